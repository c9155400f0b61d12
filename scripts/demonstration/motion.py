"""What the arm is asked to do: a pick-and-place, with its desired state at every time known in closed form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rnea_ros import RobotModel, frame, jacobian

Array = NDArray[np.float64]

PEAK_SPEED = 1.5  # rad/s, of the fastest joint in the longest move
SHORTEST = 0.8  # s, for a move down to the object or up from it
WAIT = 0.6  # s at the beginning and at the end, standing
GRASP = 0.3  # s at the object


@dataclass(frozen=True)
class PickAndPlace:
    """Way points (m, n) rad, and when each is reached (m,) s. Between two of them every joint moves by

    q(s) = q₀ + (q₁ − q₀) (10 s³ − 15 s⁴ + 6 s⁵),  s = (t − t₀) / (t₁ − t₀),

    the quintic that starts and ends at rest; its peak speed is 15/8 of the mean one.
    """

    positions: Array
    times: Array

    @property
    def duration(self) -> float:
        return float(self.times[-1])

    @property
    def motion(self) -> tuple[float, float]:
        """From when to when it moves, s."""
        return float(self.times[1]), float(self.times[-2])

    def peak_speed(self) -> float:
        return float(np.max(np.abs(np.diff(self.positions, axis=0)) / np.diff(self.times)[:, None]) * 15 / 8)

    def at(self, times: Array) -> Array:
        """Desired positions (N, n) at times (N,) s."""
        index = np.clip(np.searchsorted(self.times, times, side="right") - 1, 0, len(self.times) - 2)
        start, end = self.times[index], self.times[index + 1]
        s = np.clip((times - start) / (end - start), 0.0, 1.0)[:, None]
        shape = s**3 * (10.0 - 15.0 * s + 6.0 * s**2)
        return np.asarray(self.positions[index] + (self.positions[index + 1] - self.positions[index]) * shape)


def pick_and_place(robot: RobotModel, home: Sequence[float], turn: float, depth: float) -> PickAndPlace:
    """From `home` a quarter to one side, down, up, over to the other side, down, up, and back home.

    turn: of the first joint to each side, rad. depth: how far the tip goes down to the object, m.
    """
    middle = np.asarray(home, dtype=float)
    above_pick, above_place = middle.copy(), middle.copy()
    above_pick[0] -= turn
    above_place[0] += turn
    down = np.array([0.0, 0.0, -depth])
    pick, place = (moved(robot, pose, down) for pose in (above_pick, above_place))
    stops = [middle, middle, above_pick, pick, pick, above_pick, above_place, place, place, above_place, middle, middle]
    times = [0.0]
    for before, after in zip(stops, stops[1:], strict=False):
        distance = float(np.max(np.abs(after - before)))
        rest = WAIT if after is middle else GRASP
        times.append(times[-1] + (max(15 / 8 * distance / PEAK_SPEED, SHORTEST) if distance > 0.0 else rest))
    return PickAndPlace(np.array(stops), np.array(times))


def moved(robot: RobotModel, q: Array, offset: Array) -> Array:
    """Joint positions near `q` where the tip is `offset` (3,) m, base axes, from where it is at `q`, not turned.

    Newton's method with damped least squares, q ← q + Jᵀ (J Jᵀ + λ² 1)⁻¹ [Δp; Δφ].
    """
    assert robot.tip is not None
    goal, q = frame(robot, q, robot.tip), q.copy()
    goal[:3, 3] += offset
    for _ in range(100):
        pose = frame(robot, q, robot.tip)
        turned = goal[:3, :3] @ pose[:3, :3].T
        turn = 0.5 * np.array([turned[2, 1] - turned[1, 2], turned[0, 2] - turned[2, 0], turned[1, 0] - turned[0, 1]])
        error = np.concatenate([goal[:3, 3] - pose[:3, 3], turn])
        if np.linalg.norm(error) < 1e-6:
            break
        slope = jacobian(robot, q, robot.tip)
        q = q + slope.T @ np.linalg.solve(slope @ slope.T + 1e-6 * np.eye(6), error)
    return q
