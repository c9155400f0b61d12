"""A hand that takes hold of a link, pushes it aside and lets go."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rnea_ros import RobotModel, frame, jacobian

Array = NDArray[np.float64]

STIFFNESS = 300.0  # N/m
DAMPING = 60.0  # Ns/m


@dataclass(frozen=True)
class Push:
    """Which link is pushed, how far (3,) m in base axes, and in which time, s. Then the hand waits and lets go."""

    link: str
    way: tuple[float, float, float]
    moving: float = 1.0
    waiting: float = 1.0

    @property
    def duration(self) -> float:
        return self.moving + self.waiting


class Hand:
    """A spring and a damper between the link's origin p and a point p_h that goes its way in a smooth step:

    f = K (p_h − p) − B J q̇,    p_h = p₀ + way · s² (3 − 2 s),    s = t / moving up to 1
    """

    def __init__(self, robot: RobotModel, push: Push, q: Array) -> None:
        self._robot, self._push = robot, push
        self._start = frame(robot, q, push.link)[:3, 3]

    def force(self, seconds: float, q: Array, qd: Array) -> Array:
        """Force (3,) N on the link in the link's axes, `seconds` after the push began."""
        pose = frame(self._robot, q, self._push.link)
        s = min(seconds / self._push.moving, 1.0)
        goal = self._start + np.asarray(self._push.way) * s**2 * (3.0 - 2.0 * s)
        speed = jacobian(self._robot, q, self._push.link)[:3] @ qd
        return np.asarray(pose[:3, :3].T @ (STIFFNESS * (goal - pose[:3, 3]) - DAMPING * speed))
