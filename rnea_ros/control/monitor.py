"""What is watched every cycle: speed, tracking error, rate of the states, contact; and what was passed over, counted.

A finding is one line: what happened, to which joint, the value and the bound, and what to do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rnea_ros.control.joint_states import PassedOver
from rnea_ros.control.settings import Settings

Array = NDArray[np.float64]

SPEEDING = 3  # states in a row above the speed limit before it is a fault: one may be noise
DELAYED = 5.0  # times the latency that the gains were checked for: older states are a fault
SLOW_STATES = 20  # intervals before the rate is judged


class Monitor:
    """Bounds and counters. Arrays are (n,)."""

    def __init__(self, joint_names: Sequence[str], settings: Settings) -> None:
        self.joint_names = tuple(joint_names)
        self.passed_over: Counter[str] = Counter()
        self.passed_over_in_a_row = 0
        self.last_passed_over: PassedOver | None = None
        self.clamped: Counter[str] = Counter()  # cycles at the effort limit, by joint
        self.slowed: Counter[str] = Counter()  # cycles at the rate limit, by joint
        self.warned_of: set[str] = set()  # joints that lag, until they do not
        self._speeding = 0
        self._work = np.zeros(len(self.joint_names))
        self.take(settings)

    def take(self, settings: Settings) -> None:
        self.settings = settings

    def restart(self) -> None:
        self._speeding = 0
        self.warned_of.clear()

    def pass_over(self, what: PassedOver) -> None:
        self.passed_over[what.reason] += 1
        if not what.foreign:
            self.passed_over_in_a_row += 1
            self.last_passed_over = what

    def taken(self) -> None:
        self.passed_over_in_a_row = 0

    def speed_fault(self, velocity: Array) -> str | None:
        speed = np.abs(velocity, out=self._work)
        if not np.count_nonzero(speed > self.settings.velocity_fault):
            self._speeding = 0
            return None
        self._speeding += 1
        if self._speeding < SPEEDING:
            return None
        joint = int(np.argmax(speed - self.settings.velocity_fault))
        return (
            f"{self.joint_names[joint]} moves at {velocity[joint]:.3g} rad/s, above "
            f"{self.settings.velocity_fault[joint]:.3g} rad/s; find out why before ~/reset"
        )

    def tracking_fault(self, error: Array) -> str | None:
        size = np.abs(error, out=self._work)
        bound = self.settings.tracking_fault
        if not np.count_nonzero(size > bound):
            return None
        joint = int(np.argmax(size - bound))
        return (
            f"{self.joint_names[joint]} is {error[joint]:.3g} rad behind its reference, above {bound[joint]:.3g} rad; "
            "clear its way or slow the motion, then ~/reset"
        )

    def tracking_warnings(self, error: Array) -> list[str]:
        """One line for each joint that begins to lag; it is named again only after it was within the bound."""
        size = np.abs(error, out=self._work)
        bound = self.settings.tracking_warning
        if not self.warned_of and not np.count_nonzero(size > bound):
            return []
        lines = []
        for name, value, most in zip(self.joint_names, size, bound, strict=True):
            if value > most and name not in self.warned_of:
                self.warned_of.add(name)
                lines.append(f"{name} is {value:.3g} rad behind its reference, above {most:.3g} rad")
            elif value < 0.5 * most:
                self.warned_of.discard(name)
        return lines

    def slow_states(self, rate: float, intervals: int) -> str | None:
        """Why the joint states are too slow for control, None where they are not."""
        minimum = self.settings["minimum_rate"]
        if intervals < SLOW_STATES or rate >= minimum:
            return None
        return (
            f"joint states arrive at {rate:.3g} Hz, control needs {minimum:g} Hz; subscribe to the fast stream "
            "(remap joint_states), or raise the broadcaster's rate"
        )

    def delayed(self, age: float) -> str | None:
        """Why states of this smoothed age, s, are too old for the gains, None where they are not."""
        bound = DELAYED * self.settings.latency
        if age <= bound:
            return None
        return (
            f"joint states are {age * 1e3:.3g} ms old when they arrive, above {bound * 1e3:.3g} ms: the loop would "
            "diverge; shorten their way, or set 'latency' and lower the gains"
        )

    def contact(self, external: Array) -> str | None:
        size = np.abs(external, out=self._work)
        bound = self.settings.contact_threshold
        if not (size > bound).any():
            return None
        joint = int(np.argmax(size - bound))
        return f"contact: {external[joint]:.3g} Nm on {self.joint_names[joint]}, above {bound[joint]:.3g} Nm"

    def count_limits(self, clamped: NDArray[np.bool_], slowed: NDArray[np.bool_]) -> None:
        if np.count_nonzero(clamped):
            self.clamped.update(name for name, hit in zip(self.joint_names, clamped, strict=True) if hit)
        if np.count_nonzero(slowed):
            self.slowed.update(name for name, hit in zip(self.joint_names, slowed, strict=True) if hit)
