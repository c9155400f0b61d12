"""Frames and Jacobians on known ground: check values, derivatives, and the relations between the three kinds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from random_robots import RandomRobot, random_robots

from rnea_ros.model.kinematics import frame, jacobian
from rnea_ros.model.pose import rotation_about, rotation_from_rpy, skew
from rnea_ros.model.robot import ModelError
from rnea_ros.model.urdf import load_urdf

URDF = Path(__file__).parents[1] / "urdf"
HOME = np.array([0, -np.pi / 4, 0, -3 * np.pi / 4, 0, np.pi / 2, np.pi / 4])


def test_panda_home_pose() -> None:
    robot = load_urdf(URDF / "panda_hand.urdf", locked={"panda_finger_joint1": 0.0})
    np.testing.assert_allclose(frame(robot, HOME, "panda_link8")[:3, 3], [0.307, 0, 0.590], atol=5e-4)
    tool = frame(robot, HOME, "panda_hand_tcp")
    np.testing.assert_allclose(tool[:3, 3], [0.307, 0, 0.487], atol=5e-4)
    np.testing.assert_allclose(tool[:3, :3], np.diag([1, -1, -1]), atol=1e-15)  # the hand points down, level


def test_planar_2r_in_its_vertical_plane() -> None:
    robot = load_urdf(URDF / "planar_2r.urdf")
    q1, q2 = 0.4, 0.9
    position = frame(robot, [q1, q2], "tip")[:3, 3]
    reach = [0.5 * np.cos(q1) + 0.5 * np.cos(q1 + q2), 0, 0.5 * np.sin(q1) + 0.5 * np.sin(q1 + q2)]
    np.testing.assert_allclose(position, reach, atol=1e-15)


@given(random_robots(mimic=True, max_joints=6))
@settings(max_examples=25, deadline=None)
def test_jacobians_are_derivatives_of_the_pose(described: RandomRobot) -> None:
    robot = load_urdf(described.xml)
    q = described.rng.uniform(-1, 1, robot.n)
    name = list(robot.frames)[-1]
    pose = frame(robot, q, name)
    step = 1e-6
    geometric, spatial, body = (np.zeros((6, robot.n)) for _ in range(3))
    for i in range(robot.n):
        h = step * np.eye(robot.n)[i]
        rate = (frame(robot, q + h, name) - frame(robot, q - h, name)) / (2 * step)
        for columns, twist in ((spatial, rate @ np.linalg.inv(pose)), (body, np.linalg.inv(pose) @ rate)):
            columns[:3, i] = twist[:3, 3]
            columns[3:, i] = twist[2, 1], twist[0, 2], twist[1, 0]
        geometric[:3, i], geometric[3:, i] = rate[:3, 3], spatial[3:, i]
    for kind, expected in (("geometric", geometric), ("spatial", spatial), ("body", body)):
        scale = 1e-7 * max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(jacobian(robot, q, name, kind), expected, rtol=0, atol=scale, err_msg=kind)


@given(random_robots(mimic=True))
@settings(max_examples=25, deadline=None)
def test_the_three_kinds_are_adjoint_to_each_other(described: RandomRobot) -> None:
    """J_s = Ad_T J_b with Ad = [R [p]×R; 0 R] for linear rows first."""
    robot = load_urdf(described.xml)
    q = described.rng.uniform(-3, 3, robot.n)
    name = list(robot.frames)[-1]
    pose = frame(robot, q, name)
    rotation, position = pose[:3, :3], pose[:3, 3]
    adjoint = np.block([[rotation, skew(position) @ rotation], [np.zeros((3, 3)), rotation]])
    body, spatial = jacobian(robot, q, name, "body"), jacobian(robot, q, name, "spatial")
    np.testing.assert_allclose(spatial, adjoint @ body, rtol=0, atol=1e-11 * max(1.0, np.abs(spatial).max()))


def test_frames_on_the_base_do_not_move() -> None:
    robot = load_urdf(URDF / "panda.urdf")
    np.testing.assert_array_equal(frame(robot, HOME, "panda_link0"), np.eye(4))
    assert not jacobian(robot, HOME, "panda_link0").any()


@pytest.mark.parametrize(
    ("q", "name", "kind", "message"),
    [
        (HOME, "panda_link9", "geometric", "unknown frame 'panda_link9'; frames are panda_link0"),
        (HOME, "panda_link8", "world", "unknown kind of Jacobian 'world'; use one of geometric, body, spatial"),
        (HOME[:6], "panda_link8", "geometric", r"q has shape \(6,\), expected \(7,\): panda_joint1"),
        ([HOME], "panda_link8", "geometric", r"q has shape \(1, 7\)"),
        ([0, 0, np.nan, 0, 0, 0, 0], "panda_link8", "geometric", "q of joint 'panda_joint3' is not finite"),
        (["a"] * 7, "panda_link8", "geometric", "q is not numeric"),
    ],
)
def test_bad_arguments_are_refused_by_name(q: object, name: str, kind: str, message: str) -> None:
    robot = load_urdf(URDF / "panda.urdf")
    with pytest.raises(ModelError, match=message):
        jacobian(robot, q, name, kind)  # type: ignore[arg-type]


@pytest.mark.parametrize("quarters", range(-8, 9))
def test_quarter_turns_are_exact(quarters: int) -> None:
    angle = quarters * np.pi / 2
    for rotation in (rotation_about((0, 0, 1), angle), rotation_from_rpy(0, 0, angle)):
        np.testing.assert_array_equal(rotation, np.round(rotation))
        np.testing.assert_allclose(rotation[:2, 0], [np.cos(angle), np.sin(angle)], atol=1e-14)


def test_small_rotations_keep_their_digits() -> None:
    angle = 1e-9
    assert rotation_about((0, 0, 1), angle)[1, 0] == angle
    assert 1.0 - rotation_about((0, 0, 1), 1e-4)[0, 0] == pytest.approx(5e-9, rel=1e-7)
