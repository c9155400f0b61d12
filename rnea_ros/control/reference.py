"""The reference: what the arm is asked to do at a time. Still, along a spline, or following a streamed set point.

Every change starts from the last reference. What a new trajectory does not continue (position, velocity or
acceleration) is a difference that fades out along a quintic, so that neither feedback nor feed-forward sees a step. A
streamed set point is approached from the last position and velocity, and from the last acceleration where it gives one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rnea_ros.control.errors import Refusal
from rnea_ros.control.trajectory import (
    LARGEST,
    Point,
    Spline,
    TrajectoryRequest,
    Waypoints,
    braking,
    check_limits,
    checked,
    cubic,
    fading,
    linear,
    quintic,
    spline_through,
    unwound,
)

Array = NDArray[np.float64]

STREAM_HORIZON = 0.02  # s ahead at which a streamed set point is met: smooths the jitter of its arrival
SHORTEST_INTERVAL = 5e-4  # s between streamed set points that give a velocity
FADE_PEAK = 1.875  # peak speed of a quintic from rest to rest, in units of distance / time


@dataclass(frozen=True)
class _Streamed:
    """The last streamed set point: when it was taken, and its position and velocity, (2, n)."""

    stamp: int
    arrival: int
    target: Array


class Reference:
    """Reference state over time for n joints. Arrays are (n,), states (3, n): position, velocity, acceleration."""

    def __init__(
        self,
        joint_names: Sequence[str],
        lower: Array,
        upper: Array,
        velocity_limits: Array,
        continuous: NDArray[np.bool_],
        stream_timeout: float,
    ) -> None:
        self.joint_names = tuple(joint_names)
        self.lower, self.upper, self.velocity_limits = lower, upper, velocity_limits
        self.continuous = continuous
        self.stream_timeout = stream_timeout
        n = len(self.joint_names)
        self.state = np.zeros((3, n))  # at the last `advance`
        self._low, self._high = lower.copy(), upper.copy()
        self._spline: Spline | None = None
        self._fade: Spline | None = None
        self._waiting: tuple[Waypoints, int] | None = None
        self._streamed: _Streamed | None = None
        self._scratch = np.zeros((3, n))

    @property
    def moving(self) -> bool:
        """Whether a motion goes on or waits."""
        return self._spline is not None or self._waiting is not None

    @property
    def streaming(self) -> bool:
        return self._streamed is not None

    def hold(self, position: Array) -> None:
        """Stand still at `position`, at once."""
        self.state[:] = 0.0
        self.state[0] = position
        self._clear()
        self._widen()

    def brake(self, stamp: int, deceleration: Array) -> None:
        """From the last reference to rest."""
        state = self.state.copy()
        self._clear()
        if np.any(state[1:]):
            self._spline = braking(state, stamp, deceleration)

    def move_from(self, state: Array) -> None:
        """Take a measured state as the last reference."""
        self._clear()
        self.state[:] = state
        self._widen()

    def follow(
        self, request: TrajectoryRequest, now: int, tolerance: float, splice_time: float, deceleration: Array
    ) -> None:
        """Start, or let wait, the trajectory `request`. Raises Refusal and changes nothing where it cannot be taken.

        tolerance: largest difference between the last reference and where the trajectory starts.
        """
        waypoints = unwound(checked(request, self.joint_names), self.state[0], self.continuous)
        start = request.stamp or now
        if start > now:
            self._splice(waypoints, start, start, tolerance, splice_time, deceleration, dry=True)
            self._waiting = (waypoints, start)
            self._streamed = None
        else:
            self._splice(waypoints, start, now, tolerance, splice_time, deceleration)

    def stream(self, point: Point, stamp: int, arrival: int, tolerance: float) -> None:
        """Take a streamed set point in controller order, that arrived at `arrival`, on from the last reference, which
        is that of `stamp`. Raises Refusal that names the joint."""
        n = len(self.joint_names)
        target = np.zeros((3, n))
        given = 0
        for row, (what, values) in enumerate(
            (("positions", point.positions), ("velocities", point.velocities), ("accelerations", point.accelerations))
        ):
            if row > 0 and len(values) == 0:
                break
            if len(values) != n:
                raise Refusal(f"reference: {len(values)} {what} for {n} joints")
            target[row] = values
            given = row
        bad = ~(np.abs(target) <= LARGEST)
        if bad.any():
            row, joint = (int(i) for i in np.argwhere(bad)[0])
            raise Refusal(
                f"reference: a value of {self.joint_names[joint]!r} is {target[row, joint]:g}, expected a number of at "
                f"most {LARGEST:g}"
            )
        turns = np.where(self.continuous, np.round((self.state[0] - target[0]) / (2.0 * np.pi)), 0.0)
        target[0] += 2.0 * np.pi * turns
        self._require_near(target[0], tolerance, "reference")
        fast = np.abs(target[1]) > self.velocity_limits * (1.0 + 1e-6)
        if fast.any():
            raise Refusal(f"reference: {self.joint_names[int(np.argmax(fast))]!r} is asked to exceed its speed limit")
        if given == 0 and self._streamed is not None:
            target[1] = self._rate_of_stream(target[0], arrival)
        streamed = _Streamed(stamp, arrival, target[:2].copy())
        span = point.time if np.isfinite(point.time) else 0.0
        horizon = min(STREAM_HORIZON, self.stream_timeout / 2.0)
        if span < horizon:  # aim where the set point will be at the horizon
            ahead = horizon - max(span, 0.0)
            target[0] += target[1] * ahead + 0.5 * target[2] * ahead**2
            target[1] += target[2] * ahead
            span = horizon
        q, v, a = self.state
        if given == 2:
            approach = quintic(q, v, a, target[0], target[1], target[2], span)
        else:
            approach = cubic(q, v, target[0], target[1], span)
        onward = linear(target[0], target[0] + target[1] * self.stream_timeout, self.stream_timeout)
        pieces, knots = [approach], [0.0, span]
        if given > 0:
            pieces.append(onward)
            knots.append(span + self.stream_timeout)
        self._clear()
        self._spline = Spline(stamp, knots, np.stack(pieces))
        self._streamed = streamed

    def stale(self, stamp: int) -> bool:
        """Whether a set point was streamed, and the time-out has passed since."""
        return self._streamed is not None and stamp - self._streamed.stamp > self.stream_timeout * 1e9

    def advance(self, stamp: int, tolerance: float, splice_time: float, deceleration: Array) -> Array:
        """The reference at `stamp`, (3, n), which becomes the last reference. Raises Refusal where a waiting
        trajectory turns out to start too far away; the reference then goes on without it."""
        refused: Refusal | None = None
        if self._waiting is not None and stamp >= self._waiting[1]:
            waypoints, start = self._waiting
            self._waiting = None
            self.sample(start, self.state)
            try:
                self._splice(waypoints, start, stamp, tolerance, splice_time, deceleration)
            except Refusal as refusal:
                refused = refusal
        self.sample(stamp, self.state)
        if self._fade is not None and stamp >= self._fade.end:
            self._fade = None
        if self._spline is not None and self._fade is None and stamp >= self._spline.end and self._streamed is None:
            self._spline = None
        if refused is not None:
            raise refused
        return self.state

    def sample(self, stamp: int, out: Array) -> Array:
        """The reference at `stamp` into `out` (3, n), held inside the soft limits."""
        if self._spline is None:
            if out is not self.state:
                out[:] = self.state
            out[1:] = 0.0
            return out
        self._spline.sample(stamp, out)
        if self._fade is not None:
            out += self._fade.sample(stamp, self._scratch)
        position = out[0]
        held = (position < self._low) | (position > self._high)
        if np.count_nonzero(held):
            np.clip(position, self._low, self._high, position)
            out[1:, held] = 0.0
        return out

    def _rate_of_stream(self, position: Array, arrival: int) -> Array:
        """Velocity of set points that give none: from the last two; the last one where they came at once."""
        assert self._streamed is not None
        interval = (arrival - self._streamed.arrival) * 1e-9
        if interval < SHORTEST_INTERVAL:
            return np.asarray(self._streamed.target[1])
        rate = (position - self._streamed.target[0]) / interval
        return np.asarray(np.clip(rate, -self.velocity_limits, self.velocity_limits))

    def _clear(self) -> None:
        self._spline = self._fade = self._waiting = self._streamed = None

    def _widen(self) -> None:
        """Soft limits that include where the reference stands: an arm beyond one is not pulled, but may come back."""
        np.minimum(self.lower, self.state[0], out=self._low)
        np.maximum(self.upper, self.state[0], out=self._high)

    def _require_near(self, position: Array, tolerance: float, what: str) -> None:
        difference = np.abs(position - self.state[0])
        if (difference > tolerance).any():
            joint = int(np.argmax(difference))
            raise Refusal(
                f"{what}: starts at {position[joint]:.4g} in {self.joint_names[joint]!r}, {difference[joint]:.3g} from "
                f"the last reference {self.state[0, joint]:.4g}; at most {tolerance:g} is taken"
            )

    def _splice(
        self,
        waypoints: Waypoints,
        start: int,
        now: int,
        tolerance: float,
        splice_time: float,
        deceleration: Array,
        dry: bool = False,
    ) -> None:
        late = (now - start) * 1e-9
        if late >= waypoints.times[-1] and late > 0.0:
            raise Refusal(f"trajectory: it ended {late - waypoints.times[-1]:.3g} s ago; stamp 0 means now")
        if late < waypoints.times[0]:
            times = waypoints.times - late
            waypoints = Waypoints(times, waypoints.positions, waypoints.velocities, waypoints.accelerations)
            spline = spline_through(waypoints, now, self.state, deceleration)
        else:
            spline = spline_through(waypoints, start, None, deceleration)
        check_limits(spline, self._low, self._high, self.velocity_limits, self.joint_names)
        first = spline.sample(now, self._scratch)
        if not dry:
            self._require_near(first[0], tolerance, "trajectory")
        difference = self.state - first
        remaining = (spline.end - now) * 1e-9
        span = max(min(splice_time, remaining), 1e-3)
        fast = FADE_PEAK * np.abs(difference[0]) / span > self.velocity_limits
        if fast.any() and not dry:
            joint = int(np.argmax(fast))
            raise Refusal(
                f"trajectory: {self.joint_names[joint]!r} would have to make up {difference[0, joint]:.3g} in "
                f"{span:.3g} s"
            )
        if dry:
            return
        self._clear()
        self._spline = spline
        self._fade = fading(difference, now, span) if np.abs(difference).max() > 1e-12 else None
