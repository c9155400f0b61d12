"""A `RobotModel` as the recursion takes it, and the numbers that stay inputs of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnea_ros.dynamics.newton_euler import (
    CentredInertia,
    Functions,
    JointState,
    Link,
    Load,
    Matrix,
    OriginInertia,
    Scalar,
    Vector,
    add,
    cross,
    multiply,
    newton_euler,
)
from rnea_ros.model.robot import Body, Friction, RobotModel

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LinkSystem:
    """Links of one robot with how joint coordinates move them, in the frames of the model unless regrouped.

    Link i's joint position is ratios[i] · q[coordinates[i]] + offsets[i].
    """

    n: int
    links: tuple[Link, ...]
    coordinates: tuple[int, ...]
    ratios: tuple[float, ...]
    offsets: tuple[float, ...]
    tip: int | None  # the link that carries payload and wrench
    tip_rotation: Matrix  # pose of the tip frame in that link's frame
    tip_translation: Vector
    frame_rotations: tuple[Array, ...]  # per link: from the recursion's frame to the model's, whose origin it shares

    def tip_parameters(self) -> Array:
        """(10,) mass, first and second moments of the tip link as it stands here; zeros where there is no tip."""
        return np.zeros(10) if self.tip is None else pack_inertia(self.links[self.tip].inertia)


def link_system(robot: RobotModel) -> LinkSystem:
    """The robot's bodies with the book's parameters (mass, centre of mass, inertia about it)."""
    tip = None if robot.tip is None else robot.tip_frame
    return LinkSystem(
        n=robot.n,
        links=tuple(_link(body) for body in robot.bodies),
        coordinates=tuple(body.joint for body in robot.bodies),
        ratios=tuple(float(body.ratio) for body in robot.bodies),
        offsets=tuple(float(body.offset) for body in robot.bodies),
        tip=None if tip is None else tip.body,
        tip_rotation=as_matrix(np.eye(3) if tip is None else tip.rotation),
        tip_translation=as_vector(np.zeros(3) if tip is None else tip.translation),
        frame_rotations=tuple(np.eye(3) for _ in robot.bodies),
    )


def _link(body: Body) -> Link:
    return Link(
        parent=body.parent,
        revolute=body.kind == "revolute",
        axis=as_vector(body.axis),
        rotation=as_matrix(body.rotation),
        translation=as_vector(body.translation),
        inertia=CentredInertia(float(body.mass), as_vector(body.com), as_matrix(body.inertia)),
    )


def as_vector(array: Any) -> Vector:
    x, y, z = np.asarray(array, dtype=np.float64).tolist()
    return (x, y, z)


def as_matrix(array: Any) -> Matrix:
    first, second, third = np.asarray(array, dtype=np.float64)
    return (as_vector(first), as_vector(second), as_vector(third))


def origin_inertia(mass: float, com: Any, inertia: Any) -> OriginInertia:
    """The ten parameters about a frame's origin: h = m c,   J = ½ tr(I) 1 − I + m c cᵀ   (I about the centre c)."""
    c = np.asarray(com, dtype=np.float64)
    about_com = np.asarray(inertia, dtype=np.float64)
    second = 0.5 * np.trace(about_com) * np.eye(3) - about_com + mass * np.outer(c, c)
    return OriginInertia(float(mass), as_vector(mass * c), as_matrix(second))


def pack_inertia(inertia: Any) -> Array:
    """(10,): m, hx, hy, hz, Jxx, Jxy, Jxz, Jyy, Jyz, Jzz"""
    if isinstance(inertia, CentredInertia):
        inertia = origin_inertia(inertia.mass, inertia.com, inertia.inertia)
    j = inertia.second
    return np.array([inertia.mass, *inertia.first, *j[0], j[1][1], j[1][2], j[2][2]], dtype=np.float64)


def unpack_inertia(p: Sequence[Scalar]) -> OriginInertia:
    second = ((p[4], p[5], p[6]), (p[5], p[7], p[8]), (p[6], p[8], p[9]))
    return OriginInertia(p[0], (p[1], p[2], p[3]), second)


@dataclass(frozen=True)
class Layout:
    """Where each run-time input stands in the one vector that a kernel takes."""

    n: int

    @property
    def size(self) -> int:
        return 19 + 7 * self.n

    gravity = slice(0, 3)  # m/s², base frame
    wrench = slice(3, 9)  # N, Nm: on the tip body, about and in the tip frame
    tip = slice(9, 19)  # the tip link's ten parameters

    def joint(self, row: int) -> slice:
        return slice(19 + row * self.n, 19 + (row + 1) * self.n)

    @property
    def armature(self) -> slice:
        return self.joint(0)

    @property
    def friction(self) -> slice:
        """Six rows: viscous, coulomb, offset, A, s, α."""
        return slice(19 + self.n, 19 + 7 * self.n)


def friction_rows(friction: Friction) -> Array:
    """(6, n)"""
    return np.array(
        [
            friction.viscous,
            friction.coulomb,
            friction.offset,
            friction.sigmoid_amplitude,
            friction.sigmoid_shift,
            friction.sigmoid_slope,
        ]
    )


def sign(v: float) -> float:
    """−1, 0 or 1; 0 at 0."""
    return float(v > 0.0) - float(v < 0.0)


def joint_friction(
    p: Sequence[Scalar], v: Scalar, tanh: Callable[[Scalar], Scalar], sign: Callable[[Scalar], Scalar]
) -> Scalar:
    """τ_f(v) = d v + c sign(v) + offset + A / (1 + e^(−α (v + s))) − A / (1 + e^(−α s)),   sign(0) = 0

    with 1 / (1 + e^(−x)) = ½ (1 + tanh ½x), which cannot overflow. p: viscous d, coulomb c, offset, A, s, α.
    """
    viscous, coulomb, offset, amplitude, shift, slope = p
    half = 0.5 * slope
    sigmoid = (0.5 * amplitude) * (tanh(half * (v + shift)) - tanh(half * shift))
    return viscous * v + coulomb * sign(v) + offset + sigmoid


def friction_torque(friction: Friction, qd: Array) -> Array:
    """τ_f of every joint, (n,) or (N, n) Nm (N) from velocities of that shape."""
    torque: Array = np.asarray(joint_friction(list(friction_rows(friction)), qd, np.tanh, np.sign))
    return torque


def tip_wrench(system: LinkSystem, wrench: Sequence[Scalar]) -> Load:
    """The wrench (6) about and in the tip frame, as a load in the frame of the tip's link: n' = R n + p × (R f)."""
    fx, fy, fz, nx, ny, nz = wrench
    force = multiply(system.tip_rotation, (fx, fy, fz))
    return Load(force, add(multiply(system.tip_rotation, (nx, ny, nz)), cross(system.tip_translation, force)))


def rigid_body_torque(
    system: LinkSystem,
    q: Sequence[Scalar],
    qd: Sequence[Scalar],
    qdd: Sequence[Scalar],
    gravity: Sequence[Scalar],
    wrench: Sequence[Scalar] | None,
    tip: Sequence[Scalar] | None,
    functions: Functions,
) -> list[Scalar]:
    """Torque (n) at the joint coordinates, without armature and friction: Σ ratio · τ over the links that each moves.

    wrench (6) on and in the tip frame, tip (10) replaces the tip link's parameters; None leaves both as they are.
    """
    links = list(system.links)
    if tip is not None and system.tip is not None:
        links[system.tip] = replace(links[system.tip], inertia=unpack_inertia(tip))
    wrenches = {} if wrench is None or system.tip is None else {system.tip: tip_wrench(system, wrench)}
    gx, gy, gz = gravity
    sweep = newton_euler(links, joint_states(system, q, qd, qdd), (gx, gy, gz), functions, wrenches)
    torques: list[Scalar] = [0.0] * system.n
    for joint, ratio, torque in zip(system.coordinates, system.ratios, sweep.torques, strict=True):
        torques[joint] = torques[joint] + ratio * torque
    return torques


def joint_states(
    system: LinkSystem, q: Sequence[Scalar], qd: Sequence[Scalar], qdd: Sequence[Scalar]
) -> list[JointState]:
    """Each link's own joint state: s = ratio · q + offset."""
    return [
        JointState(ratio * q[joint] + offset, ratio * qd[joint], ratio * qdd[joint])
        for joint, ratio, offset in zip(system.coordinates, system.ratios, system.offsets, strict=True)
    ]
