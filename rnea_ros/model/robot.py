"""The robot as the dynamics see it: moving bodies in a tree, everything fixed already lumped into them.

A `RobotModel` is immutable. `urdf.py` and `dh.py` build one; `dynamics/` computes with it. Units are SI and radians.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rnea_ros.model.errors import ModelError as ModelError
from rnea_ros.model.inertia import Inertial, checked_inertial, lump

Array = NDArray[np.float64]
JointKind = Literal["revolute", "prismatic"]


def _freeze(instance: Any, name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> None:
    """Replace an array field of a frozen dataclass by a read-only copy of the given shape."""
    what = f"{type(instance).__name__.lower()} {getattr(instance, 'name', '')!r}: {name}"
    try:
        array = np.array(getattr(instance, name), dtype=dtype)
    except (TypeError, ValueError):
        raise ModelError(f"{what} is not numeric") from None
    if array.shape != shape:
        raise ModelError(f"{what} has shape {array.shape}, expected {shape}")
    array.setflags(write=False)
    object.__setattr__(instance, name, array)


def _require_rotation(what: str, rotation: Array) -> None:
    if not (np.allclose(rotation @ rotation.T, np.eye(3), atol=1e-9) and np.linalg.det(rotation) > 0.0):
        raise ModelError(f"{what}: rotation is not a proper rotation matrix")


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

    def __post_init__(self) -> None:
        for name, shape in (
            ("axis", (3,)),
            ("rotation", (3, 3)),
            ("translation", (3,)),
            ("com", (3,)),
            ("inertia", (3, 3)),
        ):
            _freeze(self, name, shape)
        scalars: Array = np.array([self.mass, self.ratio, self.offset], dtype=np.float64)
        arrays = (scalars, self.axis, self.rotation, self.translation, self.com, self.inertia)
        if not all(np.isfinite(array).all() for array in arrays):
            raise ModelError(f"body {self.name!r}: not every number is finite")
        if self.kind not in ("revolute", "prismatic"):
            raise ModelError(f"body {self.name!r}: joint kind {self.kind!r} is neither revolute nor prismatic")
        if abs(float(np.linalg.norm(self.axis)) - 1.0) > 1e-9:
            raise ModelError(f"body {self.name!r}: joint axis is not a unit vector")
        _require_rotation(f"body {self.name!r}", self.rotation)
        if self.mass < 0.0:
            raise ModelError(f"body {self.name!r}: mass is negative ({self.mass:g} kg)")


@dataclass(frozen=True, eq=False)
class Frame:
    """A named frame that is fixed on a body (or on the base, body -1): pose in that body's frame."""

    body: int
    rotation: Array  # (3, 3)
    translation: Array  # (3,) m

    def __post_init__(self) -> None:
        _freeze(self, "rotation", (3, 3))
        _freeze(self, "translation", (3,))


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

    def __post_init__(self) -> None:
        n = np.shape(self.viscous)
        if len(n) != 1:
            raise ModelError(f"friction: viscous has shape {n}, expected one number per joint")
        for item in fields(self):
            _freeze(self, item.name, (n[0],))
            if not np.isfinite(getattr(self, item.name)).all():
                raise ModelError(f"friction: {item.name} is not finite")

    @staticmethod
    def none(n: int) -> Friction:
        """No friction at n joints."""
        return Friction(*(np.zeros(n) for _ in range(6)))


@dataclass(frozen=True, eq=False)
class RobotModel:
    """A fixed-base robot with n joint coordinates. Bodies stand in an order in which parents come first.

    Gravity and all poses of the base refer to the frame of the description's root link.
    """

    name: str
    bodies: tuple[Body, ...]
    joint_names: tuple[str, ...]
    lower: Array  # (n,) rad or m; -inf for a continuous joint
    upper: Array  # (n,)
    velocity_limits: Array  # (n,) rad/s or m/s; inf where the description gives none
    effort_limits: Array  # (n,) Nm or N; inf where the description gives none, 0 where it says 0
    continuous: NDArray[np.bool_]  # (n,)
    armature: Array  # (n,) kg m² (kg for prismatic): rotor inertia seen at the joint
    friction: Friction
    frames: Mapping[str, Frame] = field(default_factory=lambda: MappingProxyType({}))
    tip: str | None = None  # name of the frame that carries payload and wrench; None where there are several leaves
    locked: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))  # movable joints held still, at
    base_mass: float = 0.0  # kg, what is fixed to the root; no joint moves it

    def __post_init__(self) -> None:
        n = self.n
        if n == 0:
            raise ModelError(f"robot {self.name!r}: no joint to move")
        if len(set(self.joint_names)) != n:
            raise ModelError(f"robot {self.name!r}: joint names are not unique")
        for name in ("lower", "upper", "velocity_limits", "effort_limits", "armature"):
            _freeze(self, name, (n,))
            if np.isnan(getattr(self, name)).any():
                raise ModelError(f"robot {self.name!r}: {name} has a NaN")
        _freeze(self, "continuous", (n,), np.bool_)
        if not (np.isfinite(self.armature).all() and (self.armature >= 0.0).all()):
            raise ModelError(f"robot {self.name!r}: armature must be finite and not negative")
        if self.friction.viscous.shape != (n,):
            raise ModelError(f"friction: {len(self.friction.viscous)} values for {n} joints")
        for index, body in enumerate(self.bodies):
            if not -1 <= body.parent < index:
                raise ModelError(f"body {body.name!r}: its parent does not come before it")
            if not 0 <= body.joint < n:
                raise ModelError(f"body {body.name!r}: joint index {body.joint} is not within 0 .. {n - 1}")
        if len({body.name for body in self.bodies}) != len(self.bodies):
            raise ModelError(f"robot {self.name!r}: body names are not unique")
        for index, joint_name in enumerate(self.joint_names):
            if not any(body.joint == index for body in self.bodies):
                raise ModelError(f"joint {joint_name!r} moves no body")
        for name, item in self.frames.items():
            if not -1 <= item.body < len(self.bodies):
                raise ModelError(f"frame {name!r}: body index {item.body} does not exist")
            _require_rotation(f"frame {name!r}", item.rotation)
        object.__setattr__(self, "frames", MappingProxyType(dict(self.frames)))
        object.__setattr__(self, "locked", MappingProxyType(dict(self.locked)))
        if self.tip is not None:
            self.moving_frame(self.tip, "tip")

    @property
    def n(self) -> int:
        """Number of joint coordinates."""
        return len(self.joint_names)

    @property
    def total_mass(self) -> float:
        """Mass of the moving bodies, kg."""
        return float(sum(body.mass for body in self.bodies))

    @property
    def leaves(self) -> tuple[str, ...]:
        """Names of the bodies that carry no other body."""
        parents = {body.parent for body in self.bodies}
        return tuple(body.name for index, body in enumerate(self.bodies) if index not in parents)

    @property
    def mimics(self) -> Mapping[str, tuple[str, float, float]]:
        """Joints folded into another: name -> (joint followed, ratio, offset)."""
        return {
            body.joint_name: (self.joint_names[body.joint], body.ratio, body.offset)
            for body in self.bodies
            if body.joint_name != self.joint_names[body.joint]
        }

    def body_index(self, name: str) -> int:
        """Index of the body called `name` (its link). Raises ModelError for a link that is lumped or unknown."""
        for index, body in enumerate(self.bodies):
            if body.name == name:
                return index
        if name in self.frames:
            carrier = self.frames[name].body
            where = "the base" if carrier < 0 else repr(self.bodies[carrier].name)
            raise ModelError(f"link {name!r} is no body of its own: it is fixed to {where}")
        raise ModelError(f"unknown link {name!r}; bodies are {', '.join(body.name for body in self.bodies)}")

    def frame(self, name: str) -> Frame:
        """The frame of the link `name`. Raises ModelError that lists the frames for an unknown name."""
        found = self.frames.get(name) if isinstance(name, str) else None
        if found is None:
            raise ModelError(f"unknown frame {name!r}; frames are {', '.join(self.frames)}")
        return found

    def moving_frame(self, name: str, role: str = "frame") -> Frame:
        """As `frame`, but it must move with some joint, or ModelError."""
        found = self.frame(name)
        if found.body < 0:
            raise ModelError(f"{role} {name!r} is fixed to the base: no joint moves it")
        return found

    @property
    def tip_frame(self) -> Frame:
        """The frame that carries payload and wrench. Raises ModelError that lists the leaves where none is chosen."""
        if self.tip is None:
            raise ModelError(
                f"robot {self.name!r} has several leaves ({', '.join(self.leaves)}): choose the tip that carries "
                "payload and wrench"
            )
        return self.frame(self.tip)

    def with_payload(self, mass: float, com: Any = None, inertia: Any = None, frame: str | None = None) -> RobotModel:
        """A new model that carries a rigid payload; this one stays as it is. A payload of 0 changes nothing.

        mass kg; com (3,) m and inertia (3, 3) kg m² about that centre of mass, both in `frame`, the tip if None.
        Without com it sits at the frame's origin, without inertia it is a point mass. Raises ModelError for an
        impossible payload, an unknown frame, and where there is no tip and no frame.
        """
        place = self.tip_frame if frame is None else self.moving_frame(frame, "payload frame")
        payload = checked_inertial("payload", mass, com, inertia).seen_from(place.rotation, place.translation)
        body = self.bodies[place.body]
        sum_ = lump([Inertial(body.mass, body.com, body.inertia), payload])
        loaded = replace(body, mass=sum_.mass, com=sum_.com, inertia=sum_.inertia)
        return replace(self, bodies=(*self.bodies[: place.body], loaded, *self.bodies[place.body + 1 :]))

    def with_armature(self, armature: Any) -> RobotModel:
        """A new model with rotor inertia at the joints, kg m² (kg): (n,), a number, or {joint name: value}.

        Joints that a mapping leaves out keep theirs. Raises ModelError for wrong lengths, unknown names, values
        below 0.
        """
        values = np.array(self.armature)
        if isinstance(armature, Mapping):
            for name, value in armature.items():
                if name not in self.joint_names:
                    raise ModelError(f"armature: unknown joint {name!r}; joints are {', '.join(self.joint_names)}")
                try:
                    values[self.joint_names.index(name)] = value
                except (TypeError, ValueError):
                    raise ModelError(f"armature: {value!r} of joint {name!r} is not a number") from None
            return replace(self, armature=values)
        if np.ndim(armature) == 0:
            values[:] = armature
            return replace(self, armature=values)
        return replace(self, armature=armature)

    def with_friction(self, friction: Friction) -> RobotModel:
        """A new model with this joint friction. Raises ModelError where its length is not n."""
        return replace(self, friction=friction)
