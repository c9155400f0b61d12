"""The recursive Newton-Euler algorithm, as it stands in the book and over whatever counts as a number.

Source: J. J. Craig, Introduction to Robotics, ch. 6 (6.45 to 6.53); the equation numbers (6.6 to 6.18) below are those
of K. Gruszka's dissertation of 2024, which writes the same recursion for modified DH frames.

The scalars are generic. Run on floats this is the trace of a motion; run on NumPy arrays it is a batch; run on symbols
it is what the specialiser turns into straight-line code. Nothing here decides on the value of a scalar.

Notation: ⁱv is a vector in the coordinates of link i; R = ⁱRᵢ₊₁ takes link i+1's coordinates to those of link i, so the
book's ⁱ⁺¹Rᵢ is Rᵀ; ẑ is the joint axis, which here may be any unit vector of the link frame.

    U = [ε]× + [ω]×[ω]×,   so that   U r = ε × r + ω × (ω × r)

is the acceleration of a point r of a link relative to the link's origin. Links stand in an order in which parents come
first. Gravity enters as the acceleration −g of the base.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

Scalar = Any  # float, NumPy array or symbol: anything with +, -, *
Vector = tuple[Scalar, Scalar, Scalar]
Matrix = tuple[Vector, Vector, Vector]  # rows

ZERO: Vector = (0.0, 0.0, 0.0)


class Functions(NamedTuple):
    """Sine and cosine of the scalars in use."""

    sin: Callable[[Scalar], Scalar]
    cos: Callable[[Scalar], Scalar]


class Motion(NamedTuple):
    """Motion of a link in its own coordinates; `a` includes −g."""

    omega: Vector  # rad/s
    alpha: Vector  # rad/s², the book's ε
    v: Vector  # m/s, of the origin
    a: Vector  # m/s², of the origin
    u: Matrix  # U, 1/s²


class Load(NamedTuple):
    """What a link's motion demands: force (N), and moment (Nm) about the link's origin."""

    force: Vector
    moment: Vector


class Inertia(Protocol):
    """Ten inertial parameters, and the law by which a motion demands force and moment of them."""

    @property
    def mass(self) -> Scalar: ...

    @property
    def first(self) -> Vector: ...  # first moment of mass about the link's origin, kg m

    def load(self, motion: Motion) -> Load: ...


@dataclass(frozen=True)
class CentredInertia:
    """Mass (kg), centre of mass (m, link frame) and inertia (kg m²) about that centre: the book's parameters."""

    mass: Scalar
    com: Vector
    inertia: Matrix

    @property
    def first(self) -> Vector:
        return scale(self.mass, self.com)

    def com_velocity(self, motion: Motion) -> Vector:
        # v_C = v + ω × p_C   (6.11)
        return add(motion.v, cross(motion.omega, self.com))

    def com_acceleration(self, motion: Motion) -> Vector:
        # a_C = ε × p_C + ω × (ω × p_C) + a   (6.12)
        return add(multiply(motion.u, self.com), motion.a)

    def force_at_com(self, motion: Motion) -> Vector:
        # F_C = m a_C   (6.14)
        return scale(self.mass, self.com_acceleration(motion))

    def moment_at_com(self, motion: Motion) -> Vector:
        # N_C = I ε + ω × (I ω)   (6.15)
        spin = cross(motion.omega, multiply(self.inertia, motion.omega))
        return add(multiply(self.inertia, motion.alpha), spin)

    def load(self, motion: Motion) -> Load:
        # F = F_C,   N = N_C + p_C × F_C
        force = self.force_at_com(motion)
        return Load(force, add(self.moment_at_com(motion), cross(self.com, force)))


@dataclass(frozen=True)
class OriginInertia:
    """The same ten parameters as moments of mass about the link's origin, in which torque is linear.

    mass m = ∫ dm (kg), first = h = ∫ r dm (kg m), second = J = ∫ r rᵀ dm (kg m²); I = tr(J) 1 − J about the origin.
    """

    mass: Scalar
    first: Vector
    second: Matrix

    def load(self, motion: Motion) -> Load:
        # F = ∫ (a + U r) dm = m a + U h
        # N = ∫ r × (a + U r) dm = h × a + vex(U J − (U J)ᵀ),   vex(S) = (S₃₂, S₁₃, S₂₁)
        u, j = motion.u, self.second
        force = add(scale(self.mass, motion.a), multiply(u, self.first))
        moment = (
            (u[2][0] * j[0][1] - u[1][0] * j[0][2])
            + (u[2][2] - u[1][1]) * j[1][2]
            + (u[2][1] * j[1][1] - u[1][2] * j[2][2]),
            (u[0][1] * j[1][2] - u[2][1] * j[0][1])
            + (u[0][0] - u[2][2]) * j[0][2]
            + (u[0][2] * j[2][2] - u[2][0] * j[0][0]),
            (u[1][2] * j[0][2] - u[0][2] * j[1][2])
            + (u[1][1] - u[0][0]) * j[0][1]
            + (u[1][0] * j[0][0] - u[0][1] * j[1][1]),
        )
        return Load(force, add(moment, cross(self.first, motion.a)))


@dataclass(frozen=True)
class Link:
    """A moving link: how it hangs on its parent (-1 is the base) and what it weighs."""

    parent: int
    revolute: bool
    axis: Vector  # ẑ, unit vector in the link frame
    rotation: Matrix  # ⁱRᵢ₊₁ at joint position 0
    translation: Vector  # ⁱpᵢ₊₁ at joint position 0, m
    inertia: Inertia


class JointState(NamedTuple):
    """Position, velocity and acceleration of one link's joint (rad or m)."""

    position: Scalar
    velocity: Scalar
    acceleration: Scalar


class Placement(NamedTuple):
    """Pose of a link in its parent's frame at the present joint position."""

    rotation: Matrix
    translation: Vector


class Sweep(NamedTuple):
    """Everything that the recursion computes, per link and in link coordinates."""

    placements: list[Placement]
    motions: list[Motion]
    forces: list[Vector]  # f, which the parent exerts on the link, N
    moments: list[Vector]  # n, the same about the link's origin, Nm
    torques: list[Scalar]  # along the link's own joint axis, Nm or N


def newton_euler(
    links: Sequence[Link],
    joints: Sequence[JointState],
    gravity: Vector,
    functions: Functions,
    wrenches: Mapping[int, Load] | None = None,
) -> Sweep:
    """Forward and backward sweep over the tree.

    joints: one state per link. gravity: (3) m/s² in base coordinates. wrenches: by link index, what the environment
    exerts on the link (force N, moment Nm about the link's origin, link coordinates); the book's fₙ₊₁ is its negative.
    """
    placements, motions = forward_sweep(links, joints, gravity, functions)
    forces, moments = backward_sweep(links, placements, motions, wrenches or {})
    # τ = n · ẑ (6.18), for a prismatic joint τ = f · ẑ
    torques = [dot(moments[i] if link.revolute else forces[i], link.axis) for i, link in enumerate(links)]
    return Sweep(placements, motions, forces, moments, torques)


def forward_sweep(
    links: Sequence[Link], joints: Sequence[JointState], gravity: Vector, functions: Functions
) -> tuple[list[Placement], list[Motion]]:
    """Motion of every link, from the base outwards."""
    # ω₀ = 0,   ε₀ = 0,   v₀ = 0,   a₀ = −g
    base = Motion(ZERO, ZERO, ZERO, negate(gravity), (ZERO, ZERO, ZERO))
    placements: list[Placement] = []
    motions: list[Motion] = []
    for link, joint in zip(links, joints, strict=True):
        parent = base if link.parent < 0 else motions[link.parent]
        placement = place(link, joint.position, functions)
        placements.append(placement)
        motions.append(_step(parent, link, joint, placement))
    return placements, motions


def place(link: Link, position: Scalar, functions: Functions) -> Placement:
    """Where the link stands in its parent's frame at this joint position."""
    if not link.revolute:
        shift = scale(position, link.axis)
        return Placement(link.rotation, add(link.translation, multiply(link.rotation, shift)))
    sine, cosine = functions.sin(position), functions.cos(position)
    return Placement(product(link.rotation, rotation_about(link.axis, sine, cosine)), link.translation)


def _step(parent: Motion, link: Link, joint: JointState, placement: Placement) -> Motion:
    rotation, p = placement
    rate, push = scale(joint.velocity, link.axis), scale(joint.acceleration, link.axis)  # q̇ ẑ and q̈ ẑ
    omega = multiply_transposed(rotation, parent.omega)
    alpha = multiply_transposed(rotation, parent.alpha)
    v = multiply_transposed(rotation, add(parent.v, cross(parent.omega, p)))
    a = multiply_transposed(rotation, add(multiply(parent.u, p), parent.a))
    if link.revolute:
        # ε' = Rᵀε + (Rᵀω) × q̇ẑ + q̈ẑ   (6.7)
        alpha = add(add(alpha, cross(omega, rate)), push)
        # ω' = Rᵀω + q̇ẑ   (6.6)
        omega = add(omega, rate)
        # v' = Rᵀ(v + ω × p)   (6.8),   a' = Rᵀ(ε × p + ω × (ω × p) + a)   (6.9)
    else:
        # v' = Rᵀ(v + ω × p) + q̇ẑ,   a' = Rᵀ(ε × p + ω × (ω × p) + a) + 2 (Rᵀω) × q̇ẑ + q̈ẑ   (Craig 6.48)
        v = add(v, rate)
        a = add(add(a, scale(2.0, cross(omega, rate))), push)
    return Motion(omega, alpha, v, a, point_acceleration_matrix(omega, alpha))


def point_acceleration_matrix(omega: Vector, alpha: Vector) -> Matrix:
    """U = [ε]× + [ω]×[ω]×"""
    x, y, z = omega
    ex, ey, ez = alpha
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    return (
        (-(yy + zz), xy - ez, xz + ey),
        (xy + ez, -(xx + zz), yz - ex),
        (xz - ey, yz + ex, -(xx + yy)),
    )


def backward_sweep(
    links: Sequence[Link],
    placements: Sequence[Placement],
    motions: Sequence[Motion],
    wrenches: Mapping[int, Load],
) -> tuple[list[Vector], list[Vector]]:
    """Force and moment that each link receives from its parent, from the leaves inwards."""
    loads = [link.inertia.load(motion) for link, motion in zip(links, motions, strict=True)]
    forces = [load.force for load in loads]
    moments = [load.moment for load in loads]
    for index in range(len(links) - 1, -1, -1):
        if index in wrenches:  # what the environment exerts need not come from the parent
            forces[index] = subtract(forces[index], wrenches[index].force)
            moments[index] = subtract(moments[index], wrenches[index].moment)
        parent = links[index].parent
        if parent >= 0:
            rotation, p = placements[index]
            # fᵢ = R fᵢ₊₁ + F_Cᵢ   (6.16)
            passed = multiply(rotation, forces[index])
            forces[parent] = add(forces[parent], passed)
            # nᵢ = N_Cᵢ + R nᵢ₊₁ + p_Cᵢ × F_Cᵢ + pᵢ₊₁ × (R fᵢ₊₁)   (6.17)
            turned = add(multiply(rotation, moments[index]), cross(p, passed))
            moments[parent] = add(moments[parent], turned)
    return forces, moments


def first_moment(links: Sequence[Link], placements: Sequence[Placement]) -> Vector:
    """Σ mᵢ p_Cᵢ (kg m) of all links in base coordinates."""
    masses = [link.inertia.mass for link in links]
    moments = [link.inertia.first for link in links]
    moment: Vector = ZERO
    for index in range(len(links) - 1, -1, -1):
        # hᵢ = mᵢ p_Cᵢ + R hᵢ₊₁ + Mᵢ₊₁ pᵢ₊₁
        rotation, p = placements[index]
        seen = add(multiply(rotation, moments[index]), scale(masses[index], p))
        parent = links[index].parent
        if parent >= 0:
            masses[parent] = masses[parent] + masses[index]
            moments[parent] = add(moments[parent], seen)
        else:
            moment = add(moment, seen)
    return moment


# Small vectors over generic scalars


def add(a: Vector, b: Vector) -> Vector:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def subtract(a: Vector, b: Vector) -> Vector:
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def negate(a: Vector) -> Vector:
    return (-a[0], -a[1], -a[2])


def scale(factor: Scalar, a: Vector) -> Vector:
    return (factor * a[0], factor * a[1], factor * a[2])


def dot(a: Vector, b: Vector) -> Scalar:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Vector, b: Vector) -> Vector:
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])


def multiply(m: Matrix, a: Vector) -> Vector:
    """M a"""
    return (dot(m[0], a), dot(m[1], a), dot(m[2], a))


def multiply_transposed(m: Matrix, a: Vector) -> Vector:
    """Mᵀ a"""
    return multiply(transpose(m), a)


def transpose(m: Matrix) -> Matrix:
    return ((m[0][0], m[1][0], m[2][0]), (m[0][1], m[1][1], m[2][1]), (m[0][2], m[1][2], m[2][2]))


def product(m: Matrix, k: Matrix) -> Matrix:
    """M K"""
    columns = transpose(k)
    first, second, third = (tuple(dot(row, column) for column in columns) for row in m)
    return (first, second, third)


def rotation_about(axis: Vector, sine: Scalar, cosine: Scalar) -> Matrix:
    """Rotation about a unit vector of floats: R = cos θ 1 + sin θ [a]× + (1 − cos θ) a aᵀ (Rodrigues)."""
    x, y, z = axis
    if (x, y) == (0.0, 0.0):  # spelled out, so that no term (1 − cos θ) is carried along for the commonest axis
        return ((cosine, -z * sine, 0.0), (z * sine, cosine, 0.0), (0.0, 0.0, 1.0))
    versine = 1.0 - cosine
    return (
        (versine * (x * x) + cosine, versine * (x * y) - sine * z, versine * (x * z) + sine * y),
        (versine * (x * y) + sine * z, versine * (y * y) + cosine, versine * (y * z) - sine * x),
        (versine * (x * z) - sine * y, versine * (y * z) + sine * x, versine * (z * z) + cosine),
    )
