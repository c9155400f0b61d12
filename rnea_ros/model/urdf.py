"""URDF to `RobotModel`: fixed and locked joints lumped, mimic joints folded, the tip chosen."""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rnea_ros.model.description import Description, Joint, describe, read_tree
from rnea_ros.model.errors import ModelError
from rnea_ros.model.inertia import Inertial, lump
from rnea_ros.model.pose import rotation_about
from rnea_ros.model.robot import Body, Frame, Friction, RobotModel

Array = NDArray[np.float64]


def load_urdf(
    path_or_xml: str | os.PathLike[str],
    joints: Sequence[str] | None = None,
    locked: Mapping[str, float] | None = None,
    tip: str | None = None,
    friction: bool = True,
    xacro_args: Mapping[str, str] | None = None,
) -> RobotModel:
    """Load a robot from URDF or xacro, given as a file's path or as the XML itself.

    joints: the joints to control, in this order; all others are locked. By default all that move and are not locked,
        from the root outwards, branches in the order of the text.
    locked: positions (rad, m) at which joints are locked; a locked joint that is not named here stands at 0. What hangs
        on a locked joint becomes part of the body that carries it, so mass and gravity torque are conserved.
    tip: the link that carries payload and wrench. By default, where one body ends the tree, the link reached from it by
        following fixed joints as long as there is exactly one; None where the tree ends in several bodies.
    friction: take `<dynamics damping friction>` into the model as viscous and Coulomb friction.
    xacro_args: arguments of a xacro file.

    A mimic joint is folded into the joint that it follows, and locked with it. Gravity and poses refer to the root.
    Raises ModelError (a ValueError), one line that names the joint or link, for everything that cannot be loaded.
    """
    return build(describe(read_tree(path_or_xml, xacro_args)), joints, locked, tip, friction)


def build(
    description: Description,
    joints: Sequence[str] | None = None,
    locked: Mapping[str, float] | None = None,
    tip: str | None = None,
    friction: bool = True,
) -> RobotModel:
    """`load_urdf` for a description that has been read; same arguments, same errors."""
    chosen = None if joints is None else _names("joints", joints, description.joints)
    motions = _motions(description, chosen, locked or {})
    names = _controlled(description, chosen, motions)
    return _assemble(description, motions, names, tip, friction)


@dataclass(frozen=True)
class _Motion:
    """Position of a joint as a function of the one it follows: ratio · q[leader] + offset; constant without leader."""

    leader: str | None
    ratio: float
    offset: float


@dataclass
class _Assembly:
    """A body while its fixed subtree is being collected."""

    joint: Joint
    parent: int
    rotation: Array
    translation: Array
    parts: list[Inertial] = field(default_factory=list)
    links: list[str] = field(default_factory=list)


def _motions(
    description: Description, controlled: Sequence[str] | None, locked: Mapping[str, float]
) -> dict[str, _Motion]:
    """How each joint moves. Raises ModelError for names in `locked` that make no sense."""
    joints = description.joints
    for name in _names("locked", locked, joints):
        if controlled is not None and name in controlled:
            raise ModelError(f"joint {name!r} is both controlled and locked")
        try:
            position = float(locked[name])
        except (TypeError, ValueError):
            raise ModelError(f"joint {name!r}: locked position is not a number") from None
        if not math.isfinite(position):
            raise ModelError(f"joint {name!r}: locked position is not finite")
    motions: dict[str, _Motion] = {}
    for name, joint in joints.items():
        leader, ratio, offset = _followed(joints, joint)
        if not leader.movable:
            ratio, constant = 0.0, offset
        elif leader.name in locked or (controlled is not None and leader.name not in controlled):
            ratio, constant = 0.0, ratio * float(locked.get(leader.name, 0.0)) + offset
        else:
            constant = offset
        motions[name] = _Motion(leader.name if ratio != 0.0 else None, ratio, offset if ratio != 0.0 else constant)
    return motions


def _names(argument: str, names: Iterable[str], joints: Mapping[str, Joint]) -> list[str]:
    """Checked joint names of an argument: known, movable, not mimicking, not twice."""
    if isinstance(names, str):
        raise ModelError(f"{argument}: expected a list of joint names, not the text {names!r}")
    checked: list[str] = []
    for name in names:
        if not isinstance(name, str):
            raise ModelError(f"{argument}: expected joint names, not {name!r}")
        if name not in joints:
            near = difflib.get_close_matches(str(name), joints, 1)
            movable = ", ".join(joint.name for joint in joints.values() if joint.movable)
            hint = f"did you mean {near[0]!r}?" if near else f"the robot has {movable}"
            raise ModelError(f"{argument}: unknown joint {name!r}; {hint}")
        if not joints[name].movable:
            raise ModelError(f"{argument}: joint {name!r} is fixed")
        if (mimic := joints[name].mimic) is not None:
            raise ModelError(f"{argument}: joint {name!r} mimics {mimic[0]!r}; name that one instead")
        if name in checked:
            raise ModelError(f"{argument}: joint {name!r} is named twice")
        checked.append(name)
    return checked


def _followed(joints: Mapping[str, Joint], joint: Joint) -> tuple[Joint, float, float]:
    """The joint at the end of a chain of mimics, with ratio and offset: s = ratio · s_leader + offset."""
    ratio, offset = 1.0, 0.0
    seen = [joint.name]
    while joint.movable and joint.mimic is not None:
        target, multiplier, shift = joint.mimic
        if target not in joints:
            raise ModelError(f"joint {joint.name!r} mimics the unknown joint {target!r}")
        if target in seen:
            raise ModelError(f"joint {joint.name!r} mimics {target!r}, which mimics it in turn")
        seen.append(target)
        # s = ratio · (multiplier · s_target + shift) + offset
        ratio, offset = ratio * multiplier, ratio * shift + offset
        joint = joints[target]
    return joint, ratio, offset


def _controlled(
    description: Description, chosen: Sequence[str] | None, motions: Mapping[str, _Motion]
) -> tuple[str, ...]:
    leaders = [name for name, motion in motions.items() if motion.leader == name]
    names = tuple(leaders if chosen is None else chosen)
    if not names:
        movable = any(joint.movable for joint in description.joints.values())
        reason = "every joint is locked" if movable else "the description has no joint that moves"
        raise ModelError(f"robot {description.name!r}: no joint to control: {reason}")
    return names


def _displacement(joint: Joint, position: float) -> tuple[Array, Array]:
    """(R, p) of the child link after moving by `position` (rad, m)."""
    if joint.type == "prismatic":
        return np.eye(3), joint.axis * position
    return rotation_about(joint.axis, position), np.zeros(3)


def _assemble(
    description: Description,
    motions: Mapping[str, _Motion],
    names: tuple[str, ...],
    tip: str | None,
    friction: bool,
) -> RobotModel:
    """Walk the tree from the root; whatever does not move is collected by the body that carries it."""
    base_parts: list[Inertial] = []
    bodies: list[_Assembly] = []
    frames: dict[str, Frame] = {}

    def place(link: str, body: int, rotation: Array, translation: Array) -> None:
        frames[link] = Frame(body, rotation, translation)
        inertial = description.links[link].inertial
        parts = base_parts if body < 0 else bodies[body].parts
        if inertial is not None:
            parts.append(inertial.seen_from(rotation, translation))
        if body >= 0:
            bodies[body].links.append(link)

    place(description.root, -1, np.eye(3), np.zeros(3))
    for joint in description.joints.values():
        parent, motion = frames[joint.parent], motions[joint.name]
        rotation = parent.rotation @ joint.rotation
        translation = parent.rotation @ joint.translation + parent.translation
        if motion.leader is None:
            if joint.movable and motion.offset != 0.0:
                turn, shift = _displacement(joint, motion.offset)
                translation = rotation @ shift + translation
                rotation = rotation @ turn
            place(joint.child, parent.body, rotation, translation)
        else:
            bodies.append(_Assembly(joint, parent.body, rotation, translation))
            place(joint.child, len(bodies) - 1, np.eye(3), np.zeros(3))

    lumps = [lump(body.parts) for body in bodies]
    _refuse_massless(description, bodies, lumps, motions)
    leaders = [description.joints[name] for name in names]
    return RobotModel(
        name=description.name,
        bodies=tuple(
            _body(body, inertial, names, motions[body.joint.name]) for body, inertial in zip(bodies, lumps, strict=True)
        ),
        joint_names=names,
        lower=np.array([joint.lower for joint in leaders]),
        upper=np.array([joint.upper for joint in leaders]),
        velocity_limits=np.array([joint.velocity for joint in leaders]),
        effort_limits=np.array([joint.effort for joint in leaders]),
        continuous=np.array([joint.type == "continuous" for joint in leaders]),
        armature=np.zeros(len(names)),
        friction=_friction(bodies, motions, names) if friction else Friction.none(len(names)),
        frames=frames,
        tip=_default_tip(description, bodies, frames) if tip is None else tip,
        locked={
            name: motion.offset
            for name, motion in motions.items()
            if motion.leader is None and description.joints[name].movable
        },
        base_mass=float(sum(part.mass for part in base_parts)),
    )


def _body(assembly: _Assembly, inertial: Inertial, names: tuple[str, ...], motion: _Motion) -> Body:
    joint = assembly.joint
    assert motion.leader is not None
    return Body(
        name=joint.child,
        joint_name=joint.name,
        kind="prismatic" if joint.type == "prismatic" else "revolute",
        parent=assembly.parent,
        joint=names.index(motion.leader),
        axis=joint.axis,
        rotation=assembly.rotation,
        translation=assembly.translation,
        mass=inertial.mass,
        com=inertial.com,
        inertia=inertial.inertia,
        ratio=motion.ratio,
        offset=motion.offset,
    )


def _refuse_massless(
    description: Description, bodies: list[_Assembly], lumps: list[Inertial], motions: Mapping[str, _Motion]
) -> None:
    """Raise ModelError for joints that move no mass at all: the mass matrix would be singular.

    A body may lack mass where a body below it has some, or where its joint follows one that moves some.
    """
    carries = [not inertial.is_nothing for inertial in lumps]
    for index in range(len(bodies) - 1, -1, -1):
        if carries[index] and bodies[index].parent >= 0:
            carries[bodies[index].parent] = True
    useful = {motions[body.joint.name].leader for body, something in zip(bodies, carries, strict=True) if something}
    empty = [body for body in bodies if motions[body.joint.name].leader not in useful]
    if not empty:
        return
    given = any(description.links[name].inertial is not None for body in empty for name in body.links)
    reason = "has mass 0" if given else "has no <inertial>"
    links = ", ".join(repr(body.joint.child) for body in empty)
    joints = ", ".join(dict.fromkeys(repr(motions[body.joint.name].leader) for body in empty))
    raise ModelError(
        f"link {links} {reason}, and nothing fixed to it or below it has mass, so joint {joints} would move nothing; "
        "give the link its inertia or lock the joint"
    )


def _friction(bodies: list[_Assembly], motions: Mapping[str, _Motion], names: tuple[str, ...]) -> Friction:
    """Damping and friction at the joint coordinates. With s = r q a folded joint adds r² d q̇ and |r| c sign(q̇)."""
    none = Friction.none(len(names))
    viscous, coulomb = np.zeros(len(names)), np.zeros(len(names))
    for body in bodies:
        motion = motions[body.joint.name]
        assert motion.leader is not None
        index = names.index(motion.leader)
        viscous[index] += motion.ratio**2 * body.joint.damping
        coulomb[index] += abs(motion.ratio) * body.joint.friction
    return Friction(viscous, coulomb, none.offset, none.sigmoid_amplitude, none.sigmoid_shift, none.sigmoid_slope)


def _default_tip(description: Description, bodies: list[_Assembly], frames: Mapping[str, Frame]) -> str | None:
    parents = {body.parent for body in bodies}
    leaves = [index for index in range(len(bodies)) if index not in parents]
    if len(leaves) != 1:
        return None
    link = bodies[leaves[0]].joint.child
    while True:
        below = [joint.child for joint in description.joints.values() if joint.parent == link]
        if len(below) != 1:
            return link
        link = below[0]
