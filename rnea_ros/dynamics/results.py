"""What the dynamics hand out and take in besides plain arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Payload:
    """A rigid thing that the tip body carries: mass kg, com (3,) m and inertia (3, 3) kg m² about com, in `frame`.

    Without com it sits at the frame's origin, without inertia it is a point mass. The frame is the robot's tip unless
    named, and it must be fixed on the tip body.
    """

    mass: float
    com: Any = None
    inertia: Any = None
    frame: str | None = None


@dataclass(frozen=True, eq=False)
class Terms:
    """Parts of a torque, each (n,) or (N, n) Nm (N for prismatic joints); their sum is the torque.

    inertia M(q) q̈, coriolis C(q, q̇) q̇ and gravity g(q) are those of the robot as modelled; payload is all that the
    run-time payload adds to the three. armature and friction are the motor's share, wrench what the environment costs.
    """

    inertia: Array
    coriolis: Array
    gravity: Array
    armature: Array
    friction: Array
    payload: Array
    wrench: Array

    def as_dict(self) -> dict[str, Array]:
        """The terms by name, in the order of their definition."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    @property
    def total(self) -> Array:
        """Sum of all terms."""
        total: Array = np.sum(list(self.as_dict().values()), axis=0)
        return total


@dataclass(frozen=True, eq=False)
class LinkTrace:
    """What the recursion computed for one link, (3,) each, in the link's own frame; gravity is part of `a` and
    `a_com`."""

    omega: Array  # ω, rad/s
    alpha: Array  # ε, rad/s²
    v: Array  # velocity of the origin, m/s
    a: Array  # acceleration of the origin, m/s²
    v_com: Array  # m/s
    a_com: Array  # m/s²
    force: Array  # F_C = m a_C, N
    moment: Array  # N_C = I ε + ω × I ω about the centre of mass, Nm
    joint_force: Array  # f, which the parent exerts on the link, N
    joint_moment: Array  # n, the same about the link's origin, Nm
    joint_torque: float  # n · ẑ (prismatic: f · ẑ), Nm or N, without armature and friction


@dataclass(frozen=True, eq=False)
class Trace:
    """One run of the recursion: every link's vectors by link name, and the torque (n,) with armature and friction."""

    links: Mapping[str, LinkTrace]
    torque: Array

    def __getitem__(self, name: str) -> LinkTrace:
        return self.links[name]
