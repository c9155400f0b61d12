"""The input contract of joint states: by name in every message, only our joints, only the fields that we need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rnea_ros.model.robot import RobotModel

Array = NDArray[np.float64]
Values: TypeAlias = "Sequence[float] | Array"  # as messages have them

TWO_PI = 2.0 * np.pi
VELOCITY_FILTER = 0.005  # s, time constant of the differences that stand in for a missing velocity
JUMP_FACTOR = 2.0  # times the speed limit: a faster step of a position is a jump of its encoder
SPEED_WITHOUT_LIMIT = 10.0  # rad/s, where a description gives none


def speed_limits(robot: RobotModel) -> Array:
    """(n,) rad/s of the description; a stand-in where it gives none."""
    return np.where(np.isfinite(robot.velocity_limits), robot.velocity_limits, SPEED_WITHOUT_LIMIT)


@dataclass(frozen=True)
class PassedOver:
    """Why a message is passed over: a short `reason` to count by, and a line with the joint and the value.

    `foreign` messages carry none of our joints; they are no fault of our hardware.
    """

    reason: str
    line: str
    foreign: bool = False


class JointStateReader:
    """Reads joint state messages into `position`, `velocity` and `effort`, (n,), in controller order.

    jump_limits: (n,) speed above which a step of the position is taken for a jump of the encoder; inf: none.
    needs_effort: a short effort field is then an error; otherwise it is never looked at.
    """

    def __init__(
        self,
        joint_names: Sequence[str],
        continuous: NDArray[np.bool_],
        jump_limits: Array | None = None,
        needs_effort: bool = False,
    ) -> None:
        n = len(joint_names)
        self.joint_names = tuple(joint_names)
        self.continuous = continuous
        self._any_continuous = bool(continuous.any())
        self.jump_limits = np.full(n, np.inf) if jump_limits is None else jump_limits
        self.needs_effort = needs_effort
        self.position, self.velocity, self.effort = np.zeros(n), np.zeros(n), np.full(n, np.nan)
        self.stamp: int | None = None  # of the last state taken
        self.velocity_measured: bool | None = None  # None until a first message
        self._names: tuple[str, ...] = ()
        self._index = np.zeros(n, dtype=np.intp)
        self._mapping_error: PassedOver | None = None
        self._q, self._qd = np.zeros(n), np.zeros(n)

    def reset(self) -> None:
        """Forget the last state, so that the next one is taken as the first."""
        self.stamp = None
        self.velocity_measured = None

    def read(
        self,
        names: Sequence[str],
        position: Values,
        velocity: Values,
        effort: Values,
        stamp: int,
    ) -> PassedOver | None:
        """Take one message with the judged `stamp` (ns). None where it was taken, else why it was passed over."""
        if names is not self._names and tuple(names) != self._names:
            self._map(tuple(names))
        if self._mapping_error is not None:
            return self._mapping_error
        count = len(names)
        if len(position) != count:
            return PassedOver("short position", f"joint state: {len(position)} positions for {count} names")
        q = self._q
        np.asarray(position, dtype=np.float64).take(self._index, out=q)
        if np.count_nonzero(np.isfinite(q)) < q.size:
            return self._not_finite("position", q)
        qd = self._qd
        verdict, measured = self._take_velocity(velocity, count, qd)
        if verdict is not None:
            return verdict
        if self.needs_effort and len(effort) not in (0, count):
            return PassedOver("short effort", f"joint state: {len(effort)} efforts for {count} names")
        first = self.stamp is None
        if not first:
            verdict = self._check_step(q, stamp)
            if verdict is not None:
                return verdict
        if not measured:
            self._difference(q, qd, stamp, first)
        self.velocity_measured = measured
        self.position[:] = q
        self.velocity[:] = qd
        if self.needs_effort and len(effort) == count:
            np.take(np.asarray(effort, dtype=np.float64), self._index, out=self.effort)
        else:
            self.effort[:] = np.nan
        self.stamp = stamp
        return None

    def _map(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._mapping_error = None
        present = [name for name in self.joint_names if name in names]
        if not present:
            self._mapping_error = PassedOver(
                "other joints", f"joint state: none of {', '.join(self.joint_names)}", foreign=True
            )
            return
        for index, name in enumerate(self.joint_names):
            times = names.count(name)
            if times == 0:
                self._mapping_error = PassedOver("missing joint", f"joint state: joint {name!r} is missing")
                return
            if times > 1:
                self._mapping_error = PassedOver(
                    "duplicate joint", f"joint state: joint {name!r} appears {times} times"
                )
                return
            self._index[index] = names.index(name)

    def _not_finite(self, what: str, values: Array) -> PassedOver:
        joint = int(np.argmin(np.isfinite(values)))
        return PassedOver(
            f"{what} not finite", f"joint state: {what} of {self.joint_names[joint]!r} is {values[joint]:g}"
        )

    def _take_velocity(self, velocity: Values, count: int, qd: Array) -> tuple[PassedOver | None, bool]:
        """Whether the velocity was measured; a broadcaster writes NaN for an interface that does not exist."""
        if len(velocity) == 0:
            if self.velocity_measured:
                return PassedOver("velocity gone", "joint state: the velocity field is empty, and was not before"), True
            return None, False
        if len(velocity) != count:
            return PassedOver("short velocity", f"joint state: {len(velocity)} velocities for {count} names"), True
        np.asarray(velocity, dtype=np.float64).take(self._index, out=qd)
        if np.count_nonzero(np.isfinite(qd)) == qd.size:
            return None, True
        if not self.velocity_measured and np.isnan(qd).all():
            return None, False
        return self._not_finite("velocity", qd), True

    def _check_step(self, q: Array, stamp: int) -> PassedOver | None:
        """Turns of continuous joints are unwound; a step faster than the joint can move is a jump."""
        assert self.stamp is not None
        if self._any_continuous:
            turns = np.round((self.position - q) / TWO_PI)
            q += np.where(self.continuous, turns * TWO_PI, 0.0)
        span = max(stamp - self.stamp, 1) * 1e-9
        jump = np.abs(q - self.position) > self.jump_limits * span + 0.02
        if np.count_nonzero(jump):
            joint = int(np.argmax(jump))
            return PassedOver(
                "position jump",
                f"joint state: {self.joint_names[joint]!r} jumps from {self.position[joint]:.4g} to {q[joint]:.4g} "
                f"in {span * 1e3:.3g} ms",
            )
        return None

    def _difference(self, q: Array, qd: Array, stamp: int, first: bool) -> None:
        """First-order low-pass of the differences of the position."""
        if first or self.stamp is None:
            qd[:] = 0.0
            return
        span = (stamp - self.stamp) * 1e-9
        if span <= 0.0:
            qd[:] = self.velocity
            return
        share = span / (span + VELOCITY_FILTER)
        qd[:] = self.velocity + share * ((q - self.position) / span - self.velocity)
