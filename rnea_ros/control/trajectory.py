"""Trajectories: requests checked, and splines of the order that the given derivatives allow.

A segment from (p₀, v₀, a₀) to (p₁, v₁, a₁) in time T, with Δ = p₁ - p₀, is the polynomial Σ cₖ sᵏ, 0 <= s <= T:

    linear   c₁ = Δ/T                                                              positions alone
    cubic    c₁ = v₀   c₂ = 3Δ/T² - (2v₀ + v₁)/T   c₃ = -2Δ/T³ + (v₀ + v₁)/T²       positions and velocities
    quintic  c₁ = v₀   c₂ = a₀/2                                                   and accelerations
             c₃ = [ 20Δ - (12v₀ + 8v₁)T - (3a₀ - a₁)T²] / 2T³
             c₄ = [-30Δ + (16v₀ + 14v₁)T + (3a₀ - 2a₁)T²] / 2T⁴
             c₅ = [ 12Δ - 6(v₀ + v₁)T - (a₀ - a₁)T²] / 2T⁵

Stamps are integer nanoseconds, times from the start of a spline are seconds. A state is a (3, n) array: rows position,
velocity, acceleration.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rnea_ros.control.errors import Refusal

Array = NDArray[np.float64]

MAXIMUM_POINTS = 10_000
LARGEST = 1e6  # no position, velocity or acceleration of an arm is: it would make a number of turns, or overflow
CHECKS_PER_SEGMENT = 8  # samples at which a segment is held against the limits


@dataclass(frozen=True)
class Point:
    """A way point as it was asked for: `time` from the trajectory's start, s; arrays in the order of the request."""

    time: float
    positions: Sequence[float] | Array
    velocities: Sequence[float] | Array = ()
    accelerations: Sequence[float] | Array = ()


@dataclass(frozen=True)
class TrajectoryRequest:
    """A trajectory by joint names. `stamp` is when it starts, ns; 0 means now. Without points it cancels."""

    joint_names: Sequence[str]
    points: Sequence[Point]
    stamp: int = 0


@dataclass(frozen=True)
class Waypoints:
    """A checked request in controller order. `velocities` and `accelerations` are NaN where a point has none."""

    times: Array  # (m,) s, increasing
    positions: Array  # (m, n)
    velocities: Array
    accelerations: Array


@dataclass
class Spline:
    """Piecewise polynomials from `start` (ns) on; at rest at the end. `coefficients` is (segments, 6, n)."""

    start: int
    knots: list[float]  # (segments + 1) s from the start, knots[0] = 0
    coefficients: Array
    _powers: Array = field(default_factory=lambda: np.zeros((3, 6)))

    @property
    def duration(self) -> float:
        return self.knots[-1]

    @property
    def end(self) -> int:
        """When the last point is reached, ns."""
        return self.start + round(self.duration * 1e9)

    def sample(self, stamp: int, out: Array) -> Array:
        """State at `stamp`, written into `out` (3, n). At rest at the end after the end; the first state before."""
        time = min(max((stamp - self.start) * 1e-9, 0.0), self.duration)
        segment = min(bisect_right(self.knots, time), len(self.knots) - 1) - 1
        _fill_powers(self._powers, time - self.knots[segment])
        self._powers.dot(self.coefficients[segment], out=out)
        if stamp >= self.end:
            out[1:] = 0.0
        return out

    def extremes(self) -> tuple[Array, Array, Array]:
        """Lowest and highest position and highest speed over the spline, (n,) each, from samples of each segment."""
        spans = np.diff(self.knots)
        s = spans[:, None] * np.linspace(0.0, 1.0, CHECKS_PER_SEGMENT + 1)
        powers = s[:, :, None] ** np.arange(6)
        position = powers @ self.coefficients
        slope = np.zeros_like(powers)
        slope[:, :, 1:] = powers[:, :, :-1] * np.arange(1, 6)
        speed = np.abs(slope @ self.coefficients)
        return position.min(axis=(0, 1)), position.max(axis=(0, 1)), speed.max(axis=(0, 1))


def _fill_powers(powers: Array, s: float) -> None:
    """Rows: sᵏ, its first and its second derivative by s, for k = 0 .. 5."""
    s2 = s * s
    s3 = s2 * s
    s4 = s3 * s
    powers[0] = (1.0, s, s2, s3, s4, s4 * s)
    powers[1] = (0.0, 1.0, 2.0 * s, 3.0 * s2, 4.0 * s3, 5.0 * s4)
    powers[2] = (0.0, 0.0, 2.0, 6.0 * s, 12.0 * s2, 20.0 * s3)


def linear(p0: Array, p1: Array, span: float) -> Array:
    out = np.zeros((6, len(p0)))
    out[0] = p0
    out[1] = (p1 - p0) / span
    return out


def cubic(p0: Array, v0: Array, p1: Array, v1: Array, span: float) -> Array:
    delta, t = p1 - p0, span
    out = np.zeros((6, len(p0)))
    out[0] = p0
    out[1] = v0
    out[2] = 3.0 * delta / t**2 - (2.0 * v0 + v1) / t
    out[3] = -2.0 * delta / t**3 + (v0 + v1) / t**2
    return out


def quintic(p0: Array, v0: Array, a0: Array, p1: Array, v1: Array, a1: Array, span: float) -> Array:
    delta, t = p1 - p0, span
    out = np.empty((6, len(p0)))
    out[0] = p0
    out[1] = v0
    out[2] = a0 / 2.0
    out[3] = (20.0 * delta - (12.0 * v0 + 8.0 * v1) * t - (3.0 * a0 - a1) * t**2) / (2.0 * t**3)
    out[4] = (-30.0 * delta + (16.0 * v0 + 14.0 * v1) * t + (3.0 * a0 - 2.0 * a1) * t**2) / (2.0 * t**4)
    out[5] = (12.0 * delta - 6.0 * (v0 + v1) * t - (a0 - a1) * t**2) / (2.0 * t**5)
    return out


def braking(state: Array, start: int, deceleration: Array) -> Spline:
    """From `state` to rest with about this mean deceleration (n,); velocity and acceleration stay continuous.

    The velocity is the cubic with v(0) = v₀, v'(0) = a₀, v(T) = v'(T) = 0; T is common to all joints.
    """
    q, v, a = state
    t = max(float(np.max(np.abs(v) / deceleration)), float(np.max(np.abs(a) / (4.0 * deceleration))), 1e-3)
    out = np.zeros((6, len(q)))
    out[0] = q
    out[1] = v
    out[2] = a / 2.0
    out[3] = (-3.0 * v / t**2 - 2.0 * a / t) / 3.0
    out[4] = (2.0 * v / t**3 + a / t**2) / 4.0
    return Spline(start, [0.0, t], out[None])


def fading(difference: Array, start: int, span: float) -> Spline:
    """From the state `difference` to zero in `span` seconds, continuous in acceleration."""
    zero = np.zeros(difference.shape[1])
    coefficients = quintic(difference[0], difference[1], difference[2], zero, zero, zero, span)
    return Spline(start, [0.0, span], coefficients[None])


def checked(request: TrajectoryRequest, joint_names: Sequence[str]) -> Waypoints:
    """The request in controller order, or Refusal that names the joint or the point.

    Every controlled joint must be there, once, and no other: a joint that is left out might be meant to stand still or
    to go on, so it is not guessed.
    """
    names, points = list(request.joint_names), request.points
    n = len(joint_names)
    for name in names:
        if name not in joint_names:
            raise Refusal(f"trajectory: unknown joint {name!r}; controlled are {', '.join(joint_names)}")
        if names.count(name) > 1:
            raise Refusal(f"trajectory: joint {name!r} appears {names.count(name)} times")
    for name in joint_names:
        if name not in names:
            raise Refusal(f"trajectory: joint {name!r} is missing; give all of {', '.join(joint_names)}")
    if len(points) > MAXIMUM_POINTS:
        raise Refusal(f"trajectory: {len(points)} points, at most {MAXIMUM_POINTS} are taken at once")
    for index, point in enumerate(points):
        _check_lengths(index, point, n)
    order = [names.index(name) for name in joint_names]
    times = np.array([point.time for point in points], dtype=float)
    _check_times(times)
    arrays = [np.array([point.positions for point in points], dtype=float)[:, order]]
    for values in ([point.velocities for point in points], [point.accelerations for point in points]):
        array = np.full((len(points), n), np.nan)
        for index, row in enumerate(values):
            if len(row):
                array[index] = row
        arrays.append(array[:, order])
    _check_values(points, arrays, joint_names)
    return Waypoints(times, *arrays)


def _check_lengths(index: int, point: Point, n: int) -> None:
    if len(point.positions) != n:
        raise Refusal(f"trajectory point {index}: {len(point.positions)} positions for {n} joints")
    for what, values in (("velocities", point.velocities), ("accelerations", point.accelerations)):
        if len(values) not in (0, n):
            raise Refusal(f"trajectory point {index}: {len(values)} {what} for {n} joints; give all or none")


def _check_times(times: Array) -> None:
    if not np.isfinite(times).all():
        raise Refusal(f"trajectory point {int(np.argmin(np.isfinite(times)))}: time_from_start is not finite")
    if times[0] < 0.0:
        raise Refusal(f"trajectory point 0: time_from_start {times[0]:g} s is negative")
    steps = np.diff(times)
    if (steps <= 0.0).any():
        index = int(np.argmax(steps <= 0.0)) + 1
        raise Refusal(
            f"trajectory point {index}: time_from_start {times[index]:g} s does not come after {times[index - 1]:g} s"
        )


def _check_values(points: Sequence[Point], arrays: Sequence[Array], joint_names: Sequence[str]) -> None:
    given = (
        np.ones(len(points), dtype=bool),
        np.array([len(point.velocities) > 0 for point in points]),
        np.array([len(point.accelerations) > 0 for point in points]),
    )
    for what, array, rows in zip(("position", "velocity", "acceleration"), arrays, given, strict=True):
        bad = ~(np.abs(array) <= LARGEST) & rows[:, None]
        if bad.any():
            index, joint = (int(i) for i in np.argwhere(bad)[0])
            raise Refusal(
                f"trajectory point {index}: {what} of {joint_names[joint]!r} is {array[index, joint]:g}, expected a "
                f"number of at most {LARGEST:g}"
            )


def unwound(waypoints: Waypoints, at: Array, continuous: NDArray[np.bool_]) -> Waypoints:
    """Continuous joints shifted by whole turns so that the first point is the one nearest to `at`."""
    turns = np.where(continuous, np.round((at - waypoints.positions[0]) / (2.0 * np.pi)), 0.0)
    return Waypoints(
        waypoints.times, waypoints.positions + 2.0 * np.pi * turns, waypoints.velocities, waypoints.accelerations
    )


def spline_through(waypoints: Waypoints, start: int, first: Array | None, deceleration: Array) -> Spline:
    """The spline through the way points.

    first: the state (3, n) at `start` from which the first point is approached, where that point lies after the start.
    A segment is quintic, cubic or linear by what both of its ends give; the state `first` gives all. What the first
    segment does not continue (the velocity, for a linear one) is left to `fading`. A last point with a velocity is
    followed by a stop with `deceleration`.
    """
    times = [float(t) for t in waypoints.times]
    p, v, a = waypoints.positions, waypoints.velocities, waypoints.accelerations
    has_v, has_a = ~np.isnan(v[:, 0]), ~np.isnan(a[:, 0])
    pieces: list[Array] = []
    if times[0] > 0.0 and first is not None:
        span = times[0]
        if has_v[0] and has_a[0]:
            pieces.append(quintic(first[0], first[1], first[2], p[0], v[0], a[0], span))
        elif has_v[0]:
            pieces.append(cubic(first[0], first[1], p[0], v[0], span))
        else:
            pieces.append(linear(first[0], p[0], span))
        times.insert(0, 0.0)
    for i in range(len(p) - 1):
        span = float(waypoints.times[i + 1] - waypoints.times[i])
        if has_v[i] and has_v[i + 1] and has_a[i] and has_a[i + 1]:
            pieces.append(quintic(p[i], v[i], a[i], p[i + 1], v[i + 1], a[i + 1], span))
        elif has_v[i] and has_v[i + 1]:
            pieces.append(cubic(p[i], v[i], p[i + 1], v[i + 1], span))
        else:
            pieces.append(linear(p[i], p[i + 1], span))
    if not pieces:  # a single point at the start itself
        pieces.append(linear(p[0], p[0], 1e-3))
        times = [times[0], times[0] + 1e-3]
    if has_v[-1] and np.any(v[-1]):
        state = np.vstack([p[-1], v[-1], a[-1] if has_a[-1] else np.zeros_like(p[-1])])
        stop = braking(state, 0, deceleration)
        pieces.append(stop.coefficients[0])
        times.append(times[-1] + stop.duration)
    offset = times[0]
    return Spline(start + round(offset * 1e9), [t - offset for t in times], np.stack(pieces))


def check_limits(
    spline: Spline, lower: Array, upper: Array, velocity: Array, joint_names: Sequence[str], slack: float = 1e-6
) -> None:
    """Refusal that names the joint where the spline leaves the position bounds or is faster than `velocity`."""
    low, high, speed = spline.extremes()
    for index, name in enumerate(joint_names):
        if low[index] < lower[index] - slack or high[index] > upper[index] + slack:
            reached = low[index] if low[index] < lower[index] - slack else high[index]
            raise Refusal(
                f"trajectory: {name!r} goes to {reached:.4g}, outside its soft limits "
                f"{lower[index]:.4g} .. {upper[index]:.4g}"
            )
        if speed[index] > velocity[index] * (1.0 + 1e-6):
            raise Refusal(
                f"trajectory: {name!r} reaches {speed[index]:.3g} rad/s, above its limit of {velocity[index]:.3g} "
                "rad/s; give it more time"
            )
