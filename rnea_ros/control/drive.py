"""What drives the arm in its mode: a law about a reference, floating, braking or a ramp to zero; then the gate."""

from __future__ import annotations

from enum import Enum, auto

import numpy as np
from numpy.typing import NDArray

from rnea_ros.control.gate import Gate
from rnea_ros.control.joint_states import JointStateReader, speed_limits
from rnea_ros.control.laws import Arm, Laws
from rnea_ros.control.reference import Reference
from rnea_ros.control.settings import Settings
from rnea_ros.control.supervisor import Action

Array = NDArray[np.float64]

AT_REST = 0.05  # rad/s: slower than this, a braking arm is held
WEAK = 0.1  # share of the braking damping that is left where states are old
BRAKING_TIME = 300_000_000  # ns: after this a braking arm is held anyway


class Way(Enum):
    """Which law makes the command."""

    LAW = auto()  # the chosen law about the reference
    FLOAT = auto()
    BRAKE = auto()
    RAMP = auto()  # to zero, where the hardware carries gravity


class Drive:
    """Laws, reference and gate of one arm. The measured state is read from `reader`; arrays are (n,), Nm, rad, rad/s.

    `error` (2, n) is reference less measured position and velocity; `support` and `share` are what the last command
    owes to gravity and what the robot adds to it.
    """

    def __init__(self, arm: Arm, reader: JointStateReader, settings: Settings) -> None:
        robot, n = arm.robot, arm.robot.n
        self.arm, self.reader = arm, reader
        margin = np.minimum(settings["limits.position_margin"], 0.25 * (robot.upper - robot.lower))
        self.soft_lower, self.soft_upper = robot.lower + margin, robot.upper - margin
        self.speed_limit = speed_limits(robot)
        self.reference = Reference(
            robot.joint_names,
            self.soft_lower,
            self.soft_upper,
            self.speed_limit,
            robot.continuous,
            settings["reference_timeout"],
        )
        self.laws = Laws(arm, settings)
        self.gate = Gate(settings.effort_limit, settings.effort_rate, settings.period)
        self.way = Way.LAW
        self.releasing = False  # on the way to silence
        self.delayed = False  # the states are older than the gains can stand: only weak damping is safe
        self.wrench: Array | None = None
        self.error = np.zeros((2, n))
        self.ahead = np.zeros((3, n))
        self.support, self.share = np.zeros(n), np.zeros(n)
        self.effort = np.zeros(n)  # the last command; written again in the next cycle
        self._commanded_at = 0  # when it was made
        self._begun: int | None = None  # stamp from which the feedback ramps up
        self._brake_since: int | None = None
        self._wrench_at = 0
        self.take(settings)

    def take(self, settings: Settings) -> None:
        """Use other settings from the next command on."""
        self.settings = settings
        self._latency = round(settings.latency * 1e9)
        self.laws.take(settings)
        self.gate.effort_limit, self.gate.rate_limit = settings.effort_limit, settings.effort_rate
        self.arm.set_payload(settings.payload)

    def begin(self, now: int, previous: Array | None) -> None:
        """Before the first command at `now`: the last one that the joints saw, or None for the support at the measured
        position."""
        self._carry()
        if previous is None:
            previous = self.gate.bounded(self.support, self.share, self.support, np.empty_like(self.effort))
        self.gate.restart(previous)
        self._commanded_at = now - round(self.settings.period * 1e9)

    def look(self) -> None:
        """Before a command: what gravity asks for and how far the arm is from its reference."""
        self._carry()
        state = self.reference.state
        np.subtract(state[0], self.reader.position, out=self.error[0])
        np.subtract(state[1], self.reader.velocity, out=self.error[1])

    def command(self, stamp: int, now: int, tracking: bool) -> bool:
        """The command for the state of `stamp` into `effort`. False where it was not finite: the last one is kept."""
        if self.way is Way.BRAKE:
            self._end_braking(stamp)
        period = self._gap(now)
        finite = self._gated(self._desired(stamp, now, tracking), now)
        if self.way is Way.LAW:
            self.laws.integrate(self.error[0], period, self.gate.clamped)
        return finite

    def support_blindly(self, now: int) -> bool:
        """Gravity support at the last position, without damping: a stale velocity would be a constant push."""
        self._carry()
        return self._gated(self.laws.supporting(self.reader.position, self.support), now)

    def next_goodbye(self) -> bool:
        """One command on the way to support alone, one period after the last; True once it is reached."""
        self.support_blindly(self._commanded_at + round(self.settings.period * 1e9))
        return not self.gate.slowed.any()

    def take_wrench(self, wrench: Array, now: int) -> None:
        self.wrench, self._wrench_at = wrench, now

    def forget_times(self) -> None:
        """The clock jumped: nothing that began before it ramps up, brakes or waits any more."""
        self._begun, self._brake_since, self.wrench = None, None, None

    def released(self) -> bool:
        """Whether a release has come to its end: at rest first, then a ramp to zero, then True."""
        if not self.releasing:
            return False
        if self.way is Way.LAW and not self.reference.moving:
            self.way = Way.RAMP
        return self.way is Way.RAMP and not self.effort.any()

    def perform(self, action: Action, stamp: int) -> None:
        """Do what a transition asks for, from the last state on."""
        q, qd = self.reader.position, self.reader.velocity
        self.releasing = False
        floating = self.way is not Way.LAW
        if action is Action.BEGIN:
            self.reference.hold(q)
            self.laws.restart()
            self._begun = stamp
            self.way = Way.LAW
        elif action is Action.BRAKE_ARM or (action is Action.RELEASE and floating):
            self.reference.move_from(np.vstack([q, qd, np.zeros_like(q)]))
            self.reference.brake(stamp, self.settings.braking_acceleration)
            self.laws.restart()
            self.way = Way.LAW
        elif action in (Action.BRAKE_REFERENCE, Action.RELEASE):
            self.reference.brake(stamp, self.settings.braking_acceleration)
        elif action is Action.FLOAT:
            self.laws.restart()
            self.way = Way.FLOAT
        elif action is Action.BRAKE_SUPPORTED:
            self.laws.restart()
            self._brake_since = None
            self.way = Way.BRAKE
        if action is Action.RELEASE:
            self.releasing = self.arm.carries_all

    def prepare(self, action: Action) -> None:
        """Before a motion: a floating arm takes itself for the last reference."""
        if action is Action.FOLLOW_FROM_ARM:
            q, qd = self.reader.position, self.reader.velocity
            moving = np.abs(qd).max() > AT_REST
            self.reference.move_from(np.vstack([q, qd if moving else np.zeros_like(q), np.zeros_like(q)]))

    def follow(self) -> None:
        """A motion was taken by the reference."""
        self.releasing = False
        self.way = Way.LAW

    def _carry(self) -> None:
        q = self.reader.position
        self.share = self.arm.share(q)
        self.support = self.arm.support(q, self.share)

    def _desired(self, stamp: int, now: int, tracking: bool) -> Array:
        q, qd = self.reader.position, self.reader.velocity
        if self.way is Way.LAW:
            self.reference.sample(stamp + self._latency, self.ahead)
            if self.wrench is not None and now - self._wrench_at > self.settings["wrench_timeout"] * 1e9:
                self.wrench = None
            return self.laws.moving(
                q,
                qd,
                self.reference.state,
                self.ahead,
                self.share,
                self.support,
                self._ramp(stamp),
                tracking,
                self.wrench,
            )
        if self.way is Way.FLOAT:
            return self._pushed_back(self.laws.floating(q, qd, self.support), q, qd)
        if self.way is Way.BRAKE:
            return self.laws.braking(q, qd, self.support, WEAK if self.delayed else 1.0)
        return self.laws.supporting(q, self.support)

    def _gap(self, now: int) -> float:
        """Seconds since the last command, at most the nominal period."""
        return min(max((now - self._commanded_at) * 1e-9, 0.0), self.settings.period)

    def _gated(self, desired: Array, now: int) -> bool:
        period = self._gap(now)
        self._commanded_at = now
        return self.gate.apply(self.support, self.share, desired, period, self.effort)

    def _pushed_back(self, torque: Array, q: Array, qd: Array) -> Array:
        """Beyond a soft limit the floating arm is pushed back by a spring, and slowed while it goes further."""
        beyond = np.minimum(q - self.soft_lower, 0.0) + np.maximum(q - self.soft_upper, 0.0)
        if not beyond.any():
            return torque
        assert self.settings.position_stiffness is not None
        push = -self.settings.position_stiffness * beyond
        push -= np.where(beyond * qd > 0.0, self.laws.braking_damping * qd, 0.0)
        self.laws.feedback += push
        return torque + push

    def _ramp(self, stamp: int) -> float:
        ramp = self.settings["enabling.ramp"]
        if ramp <= 0.0 or self._begun is None:
            return 1.0
        share = (stamp - self._begun) * 1e-9 / ramp
        if share >= 1.0:
            self._begun = None
        return float(min(max(share, 0.0), 1.0))

    def _end_braking(self, stamp: int) -> None:
        if self._brake_since is None:
            self._brake_since = stamp
        if self.delayed:
            return
        if np.abs(self.reader.velocity).max() > AT_REST and stamp - self._brake_since < BRAKING_TIME:
            return
        if self.arm.carries_all:
            self.way = Way.RAMP
        else:
            self.perform(Action.BRAKE_ARM, stamp)
            self.look()
