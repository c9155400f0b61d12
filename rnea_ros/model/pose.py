"""Rotations and rigid transforms as small NumPy arrays.

R_ab takes coordinates in frame b to coordinates in frame a; its columns are b's basis vectors seen from a.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def skew(v: Any) -> Array:
    """[v]×, so that [v]× w = v × w. (3, 3)"""
    x, y, z = v
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def cos_sin(angle: float) -> tuple[float, float]:
    """cos and sin of an angle (rad), exact at quarter turns.

    The double nearest to π/2 has the cosine 6e-17: as 0 it is as accurate, and leaves the zeros of a robot's geometry
    visible.
    """
    quarters = angle / (0.5 * math.pi)
    if abs(quarters) < 64 and quarters == round(quarters):
        return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[round(quarters) % 4]
    return math.cos(angle), math.sin(angle)


def rotation_about(axis: Any, angle: float) -> Array:
    """Rotation by `angle` (rad) about the unit vector `axis`: R = 1 + sin θ [a]× + (1 − cos θ) [a]×² (Rodrigues)."""
    k = skew(axis)
    cosine, sine = cos_sin(angle)
    # 1 − cos θ = 2 sin²(θ/2) loses no digits at small angles
    versine = 2.0 * math.sin(0.5 * angle) ** 2 if abs(angle) < 1.0 else 1.0 - cosine
    rotation: Array = np.eye(3) + sine * k + versine * (k @ k)
    return rotation


def rotation_from_rpy(roll: float, pitch: float, yaw: float) -> Array:
    """URDF's fixed-axis roll, pitch, yaw (rad): R = Rz(yaw) · Ry(pitch) · Rx(roll)."""
    (cr, sr), (cp, sp), (cy, sy) = cos_sin(roll), cos_sin(pitch), cos_sin(yaw)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def homogeneous(rotation: Array, translation: Array) -> Array:
    """(4, 4) homogeneous transform of a rotation (3, 3) and a translation (3,)."""
    transform = np.eye(4)
    transform[:3, :3] = rotation
    transform[:3, 3] = translation
    return transform
