"""Time as the stamps tell it: age, rate, duplicates, jumps. Stamps and arrivals are ns of one clock."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from rnea_ros.control.joint_states import PassedOver

PAUSE = 5.0  # times the period: one longer interval is a pause, several of them in a row are a slower rate


class Time(Enum):
    """What a stamp is judged to be."""

    GOES_ON = auto()
    JUMPED = auto()  # the clock was reset or set: begin anew


@dataclass
class Timekeeper:
    """Judges stamps. `max_age` s; a step of the stamps above `jump` s begins anew; a stamp of 0 is the arrival."""

    max_age: float
    jump: float
    last_stamp: int | None = None
    last_arrival: int | None = None
    period: float = 0.0  # s, smoothed interval of the stamps
    jitter: float = 0.0  # s, smoothed deviation of the interval from it
    age: float = 0.0  # s, smoothed age of the states at their arrival
    intervals: int = 0  # measured since the last beginning

    def judge(self, stamp: int, arrival: int) -> tuple[Time, PassedOver | None]:
        """What time does with this state, and why it is passed over, if it is."""
        stamp = stamp or arrival
        verdict = Time.GOES_ON
        if self.last_arrival is not None and arrival < self.last_arrival - int(self.max_age * 1e9):
            verdict = Time.JUMPED  # the clock itself went back
            self.restart()
        age = (arrival - stamp) * 1e-9
        if abs(age) > self.max_age:
            where = "behind" if age > 0.0 else "ahead of"
            return verdict, PassedOver(
                "too old" if age > 0.0 else "from the future",
                f"joint state: its stamp is {abs(age):.3g} s {where} this machine's clock, at most {self.max_age:g} s "
                "is taken; synchronise the clocks",
            )
        if self.last_stamp is not None:
            if stamp == self.last_stamp:
                return verdict, PassedOver("duplicate", "joint state: the same stamp again")
            if stamp < self.last_stamp:
                return verdict, PassedOver(
                    "out of order",
                    f"joint state: its stamp is {(self.last_stamp - stamp) * 1e-6:.3g} ms before the last",
                )
            if stamp - self.last_stamp > self.jump * 1e9:
                self.restart()
                verdict = Time.JUMPED
        return verdict, None

    def accept(self, stamp: int, arrival: int) -> None:
        """A state was taken."""
        if self.last_stamp is not None:
            interval = (stamp - self.last_stamp) * 1e-9
            if self.intervals == 0:
                self.period = interval
            self.jitter += 0.05 * (abs(interval - self.period) - self.jitter)
            self.period += 0.05 * (min(interval, PAUSE * self.period) - self.period)
            self.intervals += 1
        self.age += 0.05 * ((arrival - stamp) * 1e-9 - self.age)
        self.last_stamp, self.last_arrival = stamp, arrival

    def restart(self) -> None:
        self.last_stamp = self.last_arrival = None
        self.intervals = 0
        self.period = self.jitter = 0.0

    @property
    def rate(self) -> float:
        """Hz, 0 until an interval was seen."""
        return 1.0 / self.period if self.period > 0.0 else 0.0
