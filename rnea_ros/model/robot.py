"""The robot as the dynamics see it: moving bodies in a tree, everything fixed already lumped into them.

A `RobotModel` is immutable. `urdf.py` and `dh.py` build one; `dynamics/` computes with it. Units are SI and radians.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
JointKind = Literal["revolute", "prismatic"]


@dataclass(frozen=True, eq=False)
class Body:
    """A link that a joint moves, with the whole subtree fixed to it.

    Its frame is the link frame of the URDF (the DH frame i for a DH table); the joint sits at its origin. With joint
    coordinate s = ratio · q[joint] + offset, the frame is reached from the parent body's frame by

        T(s) = (rotation, translation) · Rot(axis, s)      revolute
        T(s) = (rotation, translation) · Trans(axis · s)   prismatic

    `rotation` is R_parent_child: its columns are the link frame's basis in the parent's frame, so the book's ^{i+1}R_i
    is its transpose. A mimic joint shares the `joint` index of the joint that it follows.
    """

    name: str
    joint_name: str
    kind: JointKind
    parent: int  # index of the parent body; -1 is the base
    joint: int  # index into q
    axis: Array  # (3,) unit vector, link frame
    rotation: Array  # (3, 3)
    translation: Array  # (3,) m
    mass: float  # kg
    com: Array  # (3,) m, link frame
    inertia: Array  # (3, 3) kg m² about the centre of mass, link frame; matrix elements, so [0, 1] is I_xy of URDF
    ratio: float = 1.0
    offset: float = 0.0


@dataclass(frozen=True, eq=False)
class Frame:
    """A named frame that is fixed on a body (or on the base, body -1): pose in that body's frame."""

    body: int
    rotation: Array  # (3, 3)
    translation: Array  # (3,) m


@dataclass(frozen=True, eq=False)
class Friction:
    """Joint friction as the motor torque to ADD, positive for positive velocity. Every field is (n,).

        τ_f(v) = viscous · v + coulomb · sign(v) + offset + A / (1 + e^(-α (v + s))) - A / (1 + e^(-α s))

    The sigmoid is that of Gaz et al., IEEE RA-L 2019. Units Nm (N for prismatic joints), rad/s (m/s), s/rad (s/m).
    """

    viscous: Array
    coulomb: Array
    offset: Array
    sigmoid_amplitude: Array  # A
    sigmoid_shift: Array  # s
    sigmoid_slope: Array  # α

    @staticmethod
    def none(n: int) -> Friction:
        return Friction(*(np.zeros(n) for _ in range(6)))


@dataclass(frozen=True, eq=False)
class RobotModel:
    """A fixed-base robot with n joint coordinates. Bodies stand in an order in which parents come first."""

    name: str
    bodies: tuple[Body, ...]
    joint_names: tuple[str, ...]
    lower: Array  # (n,) rad or m; -inf for a continuous joint
    upper: Array  # (n,)
    velocity_limits: Array  # (n,) rad/s or m/s; inf where the description gives none
    effort_limits: Array  # (n,) Nm or N; inf where the description gives none
    continuous: NDArray[np.bool_]  # (n,)
    armature: Array  # (n,) kg m² (kg for prismatic): rotor inertia seen at the joint
    friction: Friction
    frames: Mapping[str, Frame] = field(default_factory=lambda: MappingProxyType({}))
    tip: str | None = None  # name of the frame that carries payload and wrench; None where there are several leaves

    @property
    def n(self) -> int:
        return len(self.joint_names)

    @property
    def total_mass(self) -> float:
        """Mass of the moving bodies, kg."""
        return float(sum(body.mass for body in self.bodies))
