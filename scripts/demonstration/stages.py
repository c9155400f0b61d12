"""The course of the demonstration: float, push, track; and what was measured on the way."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from client import SECOND, TERMS, Client
from hand import Hand, Push
from motion import PickAndPlace
from numpy.typing import NDArray

from rnea_ros import RobotModel

Array = NDArray[np.float64]
Say = Callable[[str], None]

FLOATING = 5.0  # s, twice
PAUSE = 1.5e-3  # s between joint states: from here on the simulated arm left out a step
ATTEMPTS = 3
VARIANTS = {"none": "PD alone", "gravity": "PD + gravity", "full": "PD + full feed-forward"}


@dataclass
class Run:
    """Everything that one robot's run showed. Times in s since the beginning of the part, positions in rad."""

    drift: float = 0.0  # largest departure of a joint in FLOATING s
    pushed: float = 0.0  # largest way of a joint from before the push to after it settled
    drift_after: float = 0.0  # as drift, after the push has settled
    floating: tuple[Array, Array] = field(default_factory=lambda: (np.empty(0), np.empty((0, 0))))
    push_time: tuple[float, float] = (0.0, 0.0)  # its beginning and end
    settled_time: float = 0.0
    errors: dict[str, tuple[Array, Array]] = field(default_factory=dict)  # per variant: times, q_desired − q
    torques: dict[str, tuple[Array, Array]] = field(default_factory=dict)  # per term, with full feed-forward, Nm
    peak_speed: float = 0.0  # of the desired motion, rad/s
    rate: float = 0.0  # commands a second while tracking with full feed-forward
    age: Array = field(default_factory=lambda: np.empty(0))  # of the state behind each command, s

    def largest_error(self, variant: str) -> float:
        return float(np.max(np.abs(self.errors[variant][1])))

    def joint_of_largest_error(self, variant: str) -> int:
        return int(np.argmax(np.max(np.abs(self.errors[variant][1]), axis=0)))


def float_and_push(client: Client, robot: RobotModel, push: Push, run: Run, say: Say) -> None:
    """Gravity compensation: left alone, pushed, and left alone where the push left it."""
    client.spin_until(lambda: _still(client, window=0.5, travel=1e-4), "the arm to hold still", 10.0)
    say(f"floating for {FLOATING:g} s: gravity compensation alone, nothing holds the arm in place")
    client.gravity_compensation(True)
    client.spin_until(lambda: client.mode == "gravity_compensation", "the floating mode", 5.0)
    begin = time.time_ns()
    client.spin_for(FLOATING)
    client.require("gravity_compensation", begin, time.time_ns())
    run.drift = _departure(client.positions(begin, time.time_ns())[1])

    way = np.linalg.norm(push.way) * 1e3
    say(f"pushing {push.link} {way:.0f} mm aside, as a hand would, and letting go")
    before = time.time_ns()
    client.push(Hand(robot, push, client.state()[0]), push)
    run.push_time = (before - begin) / SECOND, (time.time_ns() - begin) / SECOND
    client.spin_until(lambda: _still(client, window=1.0, travel=2.5e-4), "the arm to come to rest", 15.0)
    settled = time.time_ns()
    run.settled_time = (settled - begin) / SECOND
    say(f"it came to rest; watching for {FLOATING:g} s whether it stays where it was left")
    client.spin_for(FLOATING)
    end = time.time_ns()
    client.require("gravity_compensation", settled, end)
    positions = client.positions(settled, end)[1]
    run.drift_after = _departure(positions)
    earlier = client.positions(before - SECOND // 10, before)[1]
    run.pushed = float(np.max(np.abs(positions[:50].mean(axis=0) - earlier.mean(axis=0))))
    run.floating = client.positions(begin, end)


def go(client: Client, goal: Array) -> None:
    """Hold, and move to `goal` (n,) from wherever the arm is."""
    client.hold()
    client.spin_until(lambda: client.mode == "hold" and _still(client, 0.2, 1e-3), "the arm to hold still", 5.0)
    here = client.recent(20).mean(axis=0)
    seconds = max(2.0 * float(np.max(np.abs(goal - here))), 0.5)
    motion = PickAndPlace(np.array([here, goal]), np.array([0.0, seconds]))
    client.follow(motion, delay=0.05)
    client.spin_until(lambda: client.mode == "tracking", "the controller to take the motion", 2.0)
    client.spin_until(lambda: client.mode == "hold", "the end of the motion", seconds + 2.0)


def track(client: Client, motion: PickAndPlace, run: Run, say: Say) -> None:
    """The same motion at the same gains with each kind of feed-forward."""
    run.peak_speed = motion.peak_speed()
    for variant, name in VARIANTS.items():
        say(f"pick-and-place in {motion.duration:.1f} s: {name}")
        client.set_parameters({"feedforward": variant})
        for attempt in range(1, ATTEMPTS + 1):
            begin, end = _follow(client, motion)
            times, positions = client.positions(begin, end)
            trouble = _trouble(client, times, begin, end)
            if not trouble or attempt == ATTEMPTS:
                break
            say(f"{trouble}: this machine is busy with other work; once more")
            go(client, motion.positions[0])
        if trouble:
            say(f"{trouble}: this machine is too busy for a loop at 1 kHz, and the numbers show it")
        times = times + motion.motion[0]
        run.errors[variant] = times, motion.at(times) - positions
    client.set_parameters({"feedforward": "full"})
    came, run.age = client.commands(begin, end)
    run.rate = len(came) * SECOND / (end - begin)
    run.torques = {term: client.torque(term, begin, end) for term in TERMS}


def _follow(client: Client, motion: PickAndPlace) -> tuple[int, int]:
    """Have the motion done; the stamps (ns) between which it moves."""
    client.spin_until(lambda: _still(client, 0.2, 1e-3), "the arm to hold still", 10.0)
    start = client.follow(motion)
    client.spin_for(motion.duration + 0.5 + (start - time.time_ns()) / SECOND)
    client.spin_until(lambda: client.mode == "hold", "the end of the motion", 5.0)
    begin, end = motion.motion
    return start + round(begin * SECOND), start + round(end * SECOND)


def _trouble(client: Client, times: Array, begin: int, end: int) -> str:
    """What made a measurement worthless that has nothing to do with the control, or nothing.

    A simulated arm that this machine did not let run stands still while its clock goes on, as no arm does.
    """
    pause = float(np.max(np.diff(times)))
    if pause > PAUSE:
        return f"the simulated arm stood still for {pause * 1e3:.0f} ms"
    return "" if client.tracked(begin, end) else "the motion was interrupted"


def _departure(positions: Array) -> float:
    """Largest departure of a joint from where it was at first, the encoder's noise averaged over 50 samples there."""
    return float(np.max(np.abs(positions - positions[:50].mean(axis=0))))


def _still(client: Client, window: float, travel: float) -> bool:
    """Whether no joint went further than `travel` rad in the last `window` s, the encoder's noise averaged out."""
    count = round(window * 1000)
    positions = client.recent(count)
    if len(positions) < count:
        return False
    edge = count // 5
    return bool(np.max(np.abs(positions[-edge:].mean(axis=0) - positions[:edge].mean(axis=0))) < travel)
