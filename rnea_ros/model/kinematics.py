"""Where the frames of a robot are, and how fast they move: forward kinematics and Jacobians."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rnea_ros.model.errors import ModelError
from rnea_ros.model.pose import homogeneous, rotation_about, skew
from rnea_ros.model.robot import RobotModel

Array = NDArray[np.float64]
JacobianKind = Literal["geometric", "body", "spatial"]


def frame(robot: RobotModel, q: ArrayLike, name: str) -> Array:
    """Pose of the frame (link) `name` in the base: homogeneous transform (4, 4), m. q (n,) rad or m.

    Raises ModelError for an unknown frame, wrong length or non-finite q.
    """
    found = robot.frame(name)
    poses = body_poses(robot, q)
    if found.body < 0:
        return homogeneous(found.rotation, found.translation)
    rotation, translation = poses[found.body]
    return homogeneous(rotation @ found.rotation, rotation @ found.translation + translation)


def jacobian(robot: RobotModel, q: ArrayLike, name: str, kind: JacobianKind = "geometric") -> Array:
    """Jacobian of the frame (link) `name`: (6, n), twist = J q̇, linear velocity in rows 0 to 2, angular in 3 to 5.

    kind, of the twist and its Jacobian (Murray, Li, Sastry 1994; Lynch, Park 2017):
        geometric: velocity of the frame's origin and angular velocity, both in base axes (Pinocchio's
            LOCAL_WORLD_ALIGNED).        Column of a revolute joint: [z × (p − o); z], of a prismatic one: [z; 0]
        body: the same twist in the frame's own axes (LOCAL).                            J_b = diag(Rᵀ, Rᵀ) J_g
        spatial: base axes, linear velocity of the point that passes the base's origin (WORLD).
                                                            v_s = v + p × ω,     J_s = [1 [p]×; 0 1] J_g

    q (n,) rad or m. The column of a coordinate that several joints follow (mimic) is the sum of theirs times ratio.
    Raises ModelError for an unknown frame or kind, wrong length or non-finite q.
    """
    if kind not in get_args(JacobianKind):
        raise ModelError(f"unknown kind of Jacobian {kind!r}; use one of {', '.join(get_args(JacobianKind))}")
    pose = frame(robot, q, name)
    rotation, position = pose[:3, :3], pose[:3, 3]
    poses = body_poses(robot, q)
    columns = jacobian_at(robot, poses, robot.frame(name).body, position)
    if kind == "body":
        return np.vstack([rotation.T @ columns[:3], rotation.T @ columns[3:]])
    if kind == "spatial":
        columns[:3] += skew(position) @ columns[3:]
    return columns


def jacobian_at(robot: RobotModel, poses: list[tuple[Array, Array]], body: int, point: Array) -> Array:
    """Geometric Jacobian (6, n) of a point (3,) m, base axes, that moves with a body; poses as of `body_poses`."""
    columns = np.zeros((6, robot.n))
    index = body
    while index >= 0:
        carrier = robot.bodies[index]
        rotation, origin = poses[index]
        axis = carrier.ratio * (rotation @ carrier.axis)
        if carrier.kind == "revolute":
            columns[:3, carrier.joint] += np.cross(axis, point - origin)
            columns[3:, carrier.joint] += axis
        else:
            columns[:3, carrier.joint] += axis
        index = carrier.parent
    return columns


def body_poses(robot: RobotModel, q: ArrayLike) -> list[tuple[Array, Array]]:
    """Pose of every body in the base, in the order of `robot.bodies`: rotation (3, 3), translation (3,) m."""
    coordinates = _checked(robot, q)
    poses: list[tuple[Array, Array]] = []
    for body in robot.bodies:
        rotation, translation = (np.eye(3), np.zeros(3)) if body.parent < 0 else poses[body.parent]
        translation = rotation @ body.translation + translation
        rotation = rotation @ body.rotation
        position = body.ratio * float(coordinates[body.joint]) + body.offset
        if body.kind == "revolute":
            rotation = rotation @ rotation_about(body.axis, position)
        else:
            translation = rotation @ body.axis * position + translation
        poses.append((rotation, translation))
    return poses


def _checked(robot: RobotModel, q: Any) -> Array:
    try:
        coordinates = np.asarray(q, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError("q is not numeric") from None
    if coordinates.shape != (robot.n,):
        raise ModelError(f"q has shape {coordinates.shape}, expected ({robot.n},): {', '.join(robot.joint_names)}")
    if not np.isfinite(coordinates).all():
        bad = robot.joint_names[int(np.flatnonzero(~np.isfinite(coordinates))[0])]
        raise ModelError(f"q of joint {bad!r} is not finite")
    return coordinates
