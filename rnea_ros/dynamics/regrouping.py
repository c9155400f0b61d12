"""The same robot in fewer numbers: frames whose z is the joint axis, and base parameters.

Both are changes of the model, exact to rounding, that leave every joint torque as it is while they change what happens
inside a link; so they serve the specialiser and never a trace.

Frames. A link frame may turn about its joint axis. With x along the common normal of the link's own axis and the next
one, the constant rotation to the next frame is one about x alone, as in modified Denavit-Hartenberg frames; what is
left over is a rotation about z, which adds to the joint angle.

Base parameters (Khalil and Dombre, Modeling, Identification and Control of Robots, ch. 9). Mass that sits on the
axis of a revolute joint can as well be fixed to the parent: the joint does not move it. So m, h_z and J_zz of a link
go to its parent and are 0 in the link. A prismatic joint never turns its link, so all of J can.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rnea_ros.dynamics.links import LinkSystem, as_matrix, as_vector, pack_inertia, unpack_inertia
from rnea_ros.dynamics.newton_euler import Link

Array = NDArray[np.float64]

ROUNDING = 4e-16  # what a product of two rotations may leave where a 0 or a 1 belongs


def regroup(system: LinkSystem) -> LinkSystem:
    """The equivalent system; the tip link keeps all ten parameters, plus what its children hand it."""
    framed = _along_axes(system)
    inertias = [_second_moments(link) for link in framed.links]
    for index in range(len(inertias) - 1, -1, -1):
        if index == framed.tip:  # its parameters are run-time inputs, of which nothing can be moved beforehand
            continue
        link = framed.links[index]
        movable = _movable(inertias[index], link.revolute)
        inertias[index] = inertias[index] - movable
        if link.parent >= 0:  # what the base carries, no joint feels
            pose = _homogeneous(link)
            inertias[link.parent] = inertias[link.parent] + pose @ movable @ pose.T
    links = tuple(
        replace(link, inertia=unpack_inertia(_packed(inertia)))
        for link, inertia in zip(framed.links, inertias, strict=True)
    )
    return replace(framed, links=links)


def _movable(inertia: Array, revolute: bool) -> Array:
    """The part of the 4 x 4 matrix [J h; hᵀ m] that the parent can as well carry."""
    part = np.zeros((4, 4))
    if revolute:
        axis = np.ix_([2, 3], [2, 3])
        part[axis] = inertia[axis]
    else:
        part[:3, :3] = inertia[:3, :3]
    return part


def _second_moments(link: Link) -> Array:
    """∫ (r, 1)(r, 1)ᵀ dm = [J h; hᵀ m], which a change of frame takes to T (...) Tᵀ."""
    m, hx, hy, hz, xx, xy, xz, yy, yz, zz = pack_inertia(link.inertia)
    return np.array([[xx, xy, xz, hx], [xy, yy, yz, hy], [xz, yz, zz, hz], [hx, hy, hz, m]])


def _packed(p: Array) -> list[float]:
    first, second = _without_rounding(p[:3, 3]), _without_rounding(p[:3, :3])
    upper = (second[0, 0], second[0, 1], second[0, 2], second[1, 1], second[1, 2], second[2, 2])
    return [float(x) for x in (p[3, 3], *first, *upper)]


def _without_rounding(values: Array) -> Array:
    """Entries that are rounding of others become 0, so that they cost nothing."""
    size = float(np.abs(values).max(initial=0.0))
    return np.where(np.abs(values) <= ROUNDING * size, 0.0, values)


def _homogeneous(link: Link) -> Array:
    pose = np.eye(4)
    pose[:3, :3] = link.rotation
    pose[:3, 3] = link.translation
    return pose


def _along_axes(system: LinkSystem) -> LinkSystem:
    """Turn every link frame about its origin so that z is the joint axis and x the common normal to the next axis."""
    turns: list[Array] = []  # Q: from the turned frame to the given one
    links: list[Link] = []
    offsets: list[float] = []
    for index, link in enumerate(system.links):
        turn = _turned_axes(system, index)
        before = np.eye(3) if link.parent < 0 else turns[link.parent]
        rotation = before.T @ np.array(link.rotation) @ turn
        offset = system.offsets[index]
        if link.revolute:
            # R = A Rz(b), the last row of A being (0, sin α, cos α); b adds to the joint angle. Quarter turns stay
            # in A, where they only exchange x and y.
            opposite, adjacent = rotation[2, :2] if _tilts(rotation) else (rotation[1, 0], rotation[0, 0])
            excess = math.remainder(math.atan2(opposite, adjacent), 0.5 * math.pi)
            if abs(excess) > ROUNDING:
                rotation = rotation @ _rotation_z(-excess)
                offset += excess
        inertia = unpack_inertia(_turned_inertia(link, turn))
        turns.append(turn)
        offsets.append(offset)
        links.append(
            replace(
                link,
                axis=(0.0, 0.0, 1.0),
                rotation=as_matrix(_clean(rotation)),
                translation=as_vector(_without_rounding(before.T @ np.array(link.translation))),
                inertia=inertia,
            )
        )
    tip_turn = np.eye(3) if system.tip is None else turns[system.tip]
    return replace(
        system,
        links=tuple(links),
        offsets=tuple(offsets),
        tip_rotation=as_matrix(_clean(tip_turn.T @ np.array(system.tip_rotation))),
        tip_translation=as_vector(_without_rounding(tip_turn.T @ np.array(system.tip_translation))),
        frame_rotations=tuple(turns),
    )


def _turned_axes(system: LinkSystem, index: int) -> Array:
    """Columns x, y, z of the turned frame in the coordinates of the given one."""
    z = np.array(system.links[index].axis)
    x = None
    child = next((link for link in system.links if link.parent == index), None)
    if child is not None:
        next_axis = np.array(child.rotation) @ np.array(child.axis)
        x = _direction(np.cross(z, next_axis), 1.0)
        if x is None:  # parallel axes: along the arm between them
            arm = np.array(child.translation)
            x = _direction(arm - (arm @ z) * z, float(np.linalg.norm(arm)))
    if x is None:
        x = _direction(np.cross(np.eye(3)[1], z), 1.0)  # the given x where z is the given z
    if x is None:
        x = np.eye(3)[0]
    largest = int(np.argmax(np.abs(x)))
    if x[largest] < 0.0:
        x = -x
    return _clean(np.column_stack([x, np.cross(z, x), z]))


def _direction(v: Array, size: float) -> Array | None:
    """Unit vector along v, or None where v is nothing but rounding of vectors of that size."""
    length = float(np.linalg.norm(v))
    return v / length if length > 1e-9 * max(size, 1e-300) else None


def _tilts(rotation: Array) -> bool:
    return math.hypot(rotation[2, 0], rotation[2, 1]) > 1e-9


def _turned_inertia(link: Link, turn: Array) -> list[float]:
    pose = np.eye(4)
    pose[:3, :3] = turn.T
    return _packed(pose @ _second_moments(link) @ pose.T)


def _clean(rotation: Array) -> Array:
    cleaned = np.where(np.abs(rotation) <= ROUNDING, 0.0, rotation)
    return np.where(np.abs(np.abs(rotation) - 1.0) <= ROUNDING, np.sign(rotation), cleaned)


def _rotation_z(angle: float) -> Array:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
