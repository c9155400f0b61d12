"""Robots from modified DH tables: the ES5 equals its URDF, prismatic joints and offsets equal the book's product."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnea_ros.model.dh import load_dh
from rnea_ros.model.kinematics import frame, jacobian
from rnea_ros.model.robot import ModelError
from rnea_ros.model.urdf import load_urdf

URDF = Path(__file__).parents[1] / "urdf"
PI = np.pi
ES5_TABLE = [(0, 0, 0), (PI / 2, 0, 0), (0, 0.425, 0), (0, 0.395, 0.1105), (-PI / 2, 0, 0.101), (PI / 2, 0, 0.0765)]
ES5_LINKS = [  # mass, centre of mass, cylinder axis, length, radius
    (3.931, (0, -0.008, -0.031), "z", 0.16, 0.060),
    (10.442, (0.207, 0, 0.124), "x", 0.425, 0.055),
    (2.846, (0.228, 0, 0.018), "x", 0.395, 0.045),
    (1.37, (0, -0.010, -0.005), "y", 0.10, 0.035),
    (1.3, (0, -0.010, -0.005), "y", 0.10, 0.035),
    (0.365, (0, 0, -0.012), "z", 0.05, 0.030),
]


def cylinder(mass: float, axis: str, length: float, radius: float) -> np.ndarray:
    along, across = mass * radius**2 / 2, mass * (3 * radius**2 + length**2) / 12
    return np.diag([along if name == axis else across for name in "xyz"])


def test_es5_from_its_dh_table_equals_es5_from_its_urdf() -> None:
    inertias = [(m, com, cylinder(m, axis, length, radius)) for m, com, axis, length, radius in ES5_LINKS]
    table = load_dh(ES5_TABLE, inertias, name="es5", lower=[-PI] * 5 + [-2 * PI], upper=[PI] * 5 + [2 * PI])
    urdf = load_urdf(URDF / "es5.urdf")
    assert table.joint_names == urdf.joint_names
    assert table.tip == urdf.tip == "link_6"
    np.testing.assert_allclose(table.lower, urdf.lower)
    for ours, theirs in zip(table.bodies, urdf.bodies, strict=True):
        assert (ours.name, ours.joint_name, ours.kind, ours.parent) == (
            theirs.name,
            theirs.joint_name,
            theirs.kind,
            theirs.parent,
        )
        for field in ("axis", "rotation", "translation", "com", "inertia"):
            np.testing.assert_allclose(getattr(ours, field), getattr(theirs, field), rtol=0, atol=1e-15)
    q = np.random.default_rng(0).uniform(-3, 3, 6)
    np.testing.assert_allclose(frame(table, q, "link_6"), frame(urdf, q, "link_6"), rtol=0, atol=1e-14)
    np.testing.assert_allclose(jacobian(table, q, "link_6"), jacobian(urdf, q, "link_6"), rtol=0, atol=1e-14)


def test_es5_lies_along_x_at_zero() -> None:
    position = frame(load_urdf(URDF / "es5.urdf"), np.zeros(6), "link_6")[:3, 3]
    # a₂ + a₃ along x; d₄ + d₆ along −y, d₅ up
    np.testing.assert_allclose(position, [0.425 + 0.395, -0.1105 - 0.0765, 0.101], atol=1e-15)


FACTS = Path(__file__).parents[2] / "shared" / "facts" / "panda.md"


@pytest.mark.skipif(not FACTS.exists(), reason="the published Panda tables (../shared) are not here")
@pytest.mark.parametrize("name", ["panda", "panda_hand"])
def test_panda_urdf_carries_the_published_tables(name: str) -> None:
    rows = [[cell.strip() for cell in line.strip("| \n").split("|")] for line in FACTS.read_text().splitlines()]
    kinematics = [row for row in rows if len(row) == 8 and row[0].isdigit()]
    inertias = [row for row in rows if len(row) == 9 and row[0].isdigit() and row[0] != "0"]
    angle = {"0": 0.0, "-pi/2": -PI / 2, "+pi/2": PI / 2}
    table = [(angle[row[1]], float(row[2]), float(row[3])) for row in kinematics]
    limits = np.array([row[4:] for row in kinematics], dtype=float).T
    links = []
    for _, mass, com, *moments in inertias:
        xx, xy, xz, yy, yz, zz = map(float, moments)
        links.append((float(mass), [float(c) for c in com.split()], [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
    expected, urdf = (
        load_dh(table, links),
        load_urdf(URDF / f"{name}.urdf", joints=[f"panda_joint{i + 1}" for i in range(7)]),
    )
    for limit, ours in zip(limits, (urdf.lower, urdf.upper, urdf.velocity_limits, urdf.effort_limits), strict=True):
        np.testing.assert_array_equal(ours, limit)
    for index, (ours, theirs) in enumerate(zip(urdf.bodies, expected.bodies, strict=True)):
        fields = ("axis", "rotation", "translation", "mass", "com", "inertia")
        for field in fields[:3] if name == "panda_hand" and index == 6 else fields:
            np.testing.assert_allclose(getattr(ours, field), getattr(theirs, field), rtol=0, atol=1e-15)


def craig(alpha: float, a: float, d: float, theta: float) -> np.ndarray:
    """Craig, 3rd ed., eq. 3.6, as printed."""
    ca, sa, ct, st_ = np.cos(alpha), np.sin(alpha), np.cos(theta), np.sin(theta)
    return np.array(
        [[ct, -st_, 0, a], [st_ * ca, ct * ca, -sa, -sa * d], [st_ * sa, ct * sa, ca, ca * d], [0, 0, 0, 1]]
    )


number = st.floats(-3, 3)


@given(st.lists(st.tuples(number, number, number, number, number, st.booleans()), min_size=1, max_size=7))
@settings(max_examples=80, deadline=None)
def test_poses_equal_the_books_product(rows: list[tuple[float, float, float, float, float, bool]]) -> None:
    kinds = ["prismatic" if row[5] else "revolute" for row in rows]
    robot = load_dh([row[:4] for row in rows], [(1, (0, 0, 0), np.eye(3))] * len(rows), kinds=kinds)
    expected = np.eye(4)
    for alpha, a, d, theta, q, slides in rows:
        expected = expected @ craig(alpha, a, d + q * slides, theta + q * (not slides))
    np.testing.assert_allclose(frame(robot, [row[4] for row in rows], f"link_{len(rows)}"), expected, atol=1e-12)


GOOD = (1.0, (0, 0, 0), np.eye(3))


@pytest.mark.parametrize(
    ("table", "arguments", "message"),
    [
        ([], {}, r"DH table has shape \(0,\)"),
        ([[0, 0]], {}, r"DH table has shape \(1, 2\)"),
        ([[0, 0, 0], [0, 0]], {}, "DH table is not numeric, or its rows differ"),
        ([[0, 0, np.nan]], {}, "DH table: row 1 is not finite"),
        ([[0, 0, 0]], {"inertias": []}, "inertias: 0 entries for 1 rows"),
        ([[0, 0, 0]], {"inertias": [(1, 2)]}, "link 'link_1': expected"),
        ([[0, 0, 0]], {"inertias": [(-1, (0, 0, 0), np.eye(3))]}, "link 'link_1': mass is negative"),
        ([[0, 0, 0]], {"inertias": [(1, (0, 0), np.eye(3))]}, "link 'link_1': centre of mass has shape"),
        ([[0, 0, 0]], {"inertias": [(1, (0, 0, 0), np.diag([1, 1, 3]))]}, "link 'link_1': .*triangle inequality"),
        ([[0, 0, 0]], {"inertias": [(1, (0, 0, 0), np.diag([1, 1, -1]))]}, "link 'link_1': .*positive definite"),
        ([[0, 0, 0]], {"inertias": [(1, (0, 0, 0), [[1, 1, 0], [0, 1, 0], [0, 0, 1]])]}, "not symmetric"),
        ([[0, 0, 0]], {"kinds": ["ball"]}, "joint 'joint_1': unknown kind 'ball'"),
        ([[0, 0, 0]], {"kinds": []}, "kinds: 0 entries"),
        ([[0, 0, 0]], {"joint_names": ["a", "b"]}, "joint_names: 2 names for 1 rows"),
        ([[0, 0, 0]] * 2, {"link_names": ["a", "a"]}, "body names are not unique"),
        ([[0, 0, 0]], {"lower": [1, 2]}, r"lower has shape \(2,\)"),
        ([[0, 0, 0]], {"upper": ["x"]}, "upper is not numeric"),
        ([[0, 0, 0]], {"armature": [-1]}, "armature must be finite and not negative"),
    ],
)
def test_bad_tables_are_refused_by_name(table: list, arguments: dict, message: str) -> None:
    inertias = arguments.pop("inertias", [GOOD] * len(table))
    with pytest.raises(ModelError, match=message):
        load_dh(table, inertias, **arguments)


def test_continuous_joints_have_no_limits() -> None:
    robot = load_dh([[0, 0, 0]] * 2, [GOOD] * 2, kinds=["continuous", "revolute"], lower=[-1, -1], upper=[1, 1])
    np.testing.assert_array_equal(robot.lower, [-np.inf, -1])
    np.testing.assert_array_equal(robot.continuous, [True, False])
