"""Payload on a model, and the algebra of lumping."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_robots import random_inertia

from rnea_ros.model.inertia import Inertial, lump
from rnea_ros.model.pose import rotation_from_rpy
from rnea_ros.model.robot import ModelError
from rnea_ros.model.urdf import load_urdf

URDF = Path(__file__).parents[1] / "urdf"


def random_part(rng: np.random.Generator) -> Inertial:
    mass = rng.uniform(0.1, 5.0)
    return Inertial(mass, rng.normal(size=3), random_inertia(rng, mass))


def about_origin(part: Inertial) -> np.ndarray:
    """Inertia about the frame's origin; these simply add up."""
    c = part.com
    return part.inertia + part.mass * (c @ c * np.eye(3) - np.outer(c, c))


@given(st.integers(0, 2**32 - 1), st.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_lumping_conserves_mass_first_moment_and_inertia_about_any_point(seed: int, count: int) -> None:
    parts = [random_part(np.random.default_rng([seed, i])) for i in range(count)]
    whole = lump(parts)
    assert whole.mass == pytest.approx(sum(part.mass for part in parts), rel=1e-14)
    np.testing.assert_allclose(whole.mass * whole.com, sum(part.mass * part.com for part in parts), atol=1e-12)
    np.testing.assert_allclose(about_origin(whole), sum(about_origin(part) for part in parts), atol=1e-11)
    pairwise = parts[0]
    for part in parts[1:]:
        pairwise = lump([pairwise, part])
    np.testing.assert_allclose(pairwise.inertia, whole.inertia, atol=1e-11)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_lumping_and_moving_commute(seed: int) -> None:
    rng = np.random.default_rng(seed)
    parts = [random_part(rng) for _ in range(3)]
    rotation, translation = rotation_from_rpy(*rng.uniform(-3, 3, 3)), rng.normal(size=3)
    one = lump(parts).seen_from(rotation, translation)
    other = lump([part.seen_from(rotation, translation) for part in parts])
    np.testing.assert_allclose(one.com, other.com, atol=1e-13)
    np.testing.assert_allclose(one.inertia, other.inertia, atol=1e-11)


def test_f24_payload_of_zero_changes_nothing_and_the_robot_stays_as_it_was() -> None:
    robot = load_urdf(URDF / "panda.urdf")
    before = (robot.bodies[-1].mass, robot.bodies[-1].com.copy(), robot.bodies[-1].inertia.copy())
    for same in (robot.with_payload(0.0), robot.with_payload(0.0, (1, 2, 3))):
        for one, other in zip(same.bodies, robot.bodies, strict=True):
            assert one.mass == other.mass
            np.testing.assert_array_equal(one.com, other.com)
            np.testing.assert_array_equal(one.inertia, other.inertia)
    loaded = robot.with_payload(2.0, (0, 0, 0.1), np.diag([0.01, 0.01, 0.01]))
    assert loaded.total_mass == pytest.approx(robot.total_mass + 2.0)
    assert robot.bodies[-1].mass == before[0]
    np.testing.assert_array_equal(robot.bodies[-1].com, before[1])
    np.testing.assert_array_equal(robot.bodies[-1].inertia, before[2])


def test_payload_sits_where_a_fixed_link_would() -> None:
    """The hand as a payload at the flange equals the hand in the description."""
    bare = load_urdf(URDF / "panda.urdf")
    with_hand = load_urdf(URDF / "panda_hand.urdf", locked={"panda_finger_joint1": 0.0})
    turn = rotation_from_rpy(0, 0, -np.pi / 4)
    parts = [Inertial(0.73, np.array([-0.01, 0, 0.03]), np.diag([0.001, 0.0025, 0.0017]))]
    parts += [Inertial(0.015, np.array([0, 0, 0.0584]), np.diag([2.375e-6, 2.375e-6, 7.5e-7]))] * 2
    hand = lump([part.seen_from(turn, np.zeros(3)) for part in parts])
    loaded = bare.with_payload(hand.mass, hand.com, hand.inertia)
    elsewhere = bare.with_payload(hand.mass, hand.com + [0, 0, 0.107], hand.inertia, frame="panda_link7")
    for model in (loaded, elsewhere):
        np.testing.assert_allclose(model.bodies[-1].mass, with_hand.bodies[-1].mass, rtol=1e-14)
        np.testing.assert_allclose(model.bodies[-1].com, with_hand.bodies[-1].com, atol=1e-15)
        np.testing.assert_allclose(model.bodies[-1].inertia, with_hand.bodies[-1].inertia, atol=1e-15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1.0,), "payload: mass is negative"),
        ((np.nan,), "payload: mass is not finite"),
        (("heavy",), "payload: mass is not numeric"),
        ((1.0, (0, 0)), r"payload: centre of mass has shape \(2,\)"),
        ((1.0, None, np.diag([1, 1, 5])), "payload: .*triangle inequality"),
        ((1.0, None, np.diag([1, 1, -1])), "payload: .*positive definite"),
        ((1.0, None, None, "nowhere"), "unknown frame 'nowhere'"),
        ((1.0, None, None, "panda_link0"), "payload frame 'panda_link0' is fixed to the base"),
    ],
)
def test_impossible_payload_is_refused(arguments: tuple, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load_urdf(URDF / "panda.urdf").with_payload(*arguments)


def test_payload_without_a_tip_lists_the_leaves() -> None:
    robot = load_urdf(URDF / "panda_hand.urdf")
    with pytest.raises(ModelError, match=r"several leaves \(panda_leftfinger, panda_rightfinger\)"):
        robot.with_payload(1.0)
    assert robot.with_payload(1.0, frame="panda_hand").total_mass == pytest.approx(robot.total_mass + 1)
