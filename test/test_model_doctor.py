"""The model doctor: each ailment gets one finding that names the link or joint, and our own robots are well."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from test_model_parser_fuzz import mutated
from test_model_urdf import GRIPPER, INERTIAL, LIMIT, TWO, joint, link, robot

from rnea_ros.model.doctor import Finding, examine
from rnea_ros.model.urdf import load_urdf

URDF = Path(__file__).parents[1] / "urdf"


def findings(text: str, severity: str, name: str, **arguments: object) -> list[Finding]:
    return [f for f in examine(text, **arguments) if f.severity == severity and repr(name) in f.name]  # type: ignore[arg-type]


def inertial(mass: float, xx: float, yy: float, zz: float, xyz: str = "0.1 0 0", xy: float = 0.0) -> str:
    return (
        f'<inertial><origin xyz="{xyz}"/><mass value="{mass}"/>'
        f'<inertia ixx="{xx}" ixy="{xy}" ixz="0" iyy="{yy}" iyz="0" izz="{zz}"/></inertial>'
    )


def arm_with(last: str, *more: str) -> str:
    return robot(link("base"), link("a"), link("b", last), *more, *TWO[3:])


@pytest.mark.parametrize("name", ["es5", "panda", "panda_hand", "planar_2r"])
def test_our_robots_are_well(name: str) -> None:
    assert [str(f) for f in examine(URDF / f"{name}.urdf") if f.severity != "info"] == []


def test_every_body_is_reported_with_mass_and_centre() -> None:
    (finding,) = findings(robot(*TWO), "info", "b")
    assert finding.what == "weighs 1 kg with all that is fixed to it, centre of mass (0.1 0 0) m"


def test_findings_come_worst_first_and_read_as_one_line() -> None:
    text = robot(*GRIPPER).replace('effort="30"', 'effort="0"', 1)
    found = examine(text, locked={"grip": 5.0})
    severities = [f.severity for f in found]
    assert severities == sorted(severities, key=["fatal", "warning", "info"].index)
    assert {"fatal", "warning", "info"} == set(severities)
    assert str(found[0]) == (
        "fatal: joint 'j1': effort limit is 0; no torque passes: write the drive's limit into <limit>"
    )


def test_f14_a_link_of_7_grams_and_torques_near_a_million_are_implausible() -> None:
    (light,) = findings(arm_with(inertial(0.007, 1e-5, 1e-5, 1e-5)), "warning", "b")
    assert light.what == "weighs only 7 g"
    grams = arm_with(inertial(1e5, 1e3, 1e3, 1e3)).replace('xyz="0 0 1"', 'xyz="0 1 0"')
    assert "gravity alone takes" in findings(grams, "fatal", "j1")[0].what
    unlimited = grams.replace(LIMIT, '<limit lower="-1" upper="1"/>')
    assert "Nm" in findings(unlimited, "fatal", "j2")[0].what


def test_f14_gravity_beyond_the_effort_limit_is_a_warning() -> None:
    text = arm_with(inertial(40, 0.4, 0.4, 0.4)).replace('xyz="0 0 1"', 'xyz="0 1 0"')
    (finding,) = findings(text, "warning", "j2")
    assert "of 30 Nm within the joint limits" in finding.what
    assert not findings(text, "warning", "j2", gravity=(0, 9.81, 0))  # along the axis: nothing to hold


def test_gravity_torque_equals_a_known_arm() -> None:
    """The planar 2R stretched out needs (m₁/2 + m₂) g L₁ + m₂/2 g L₂ = 9.81 Nm at its shoulder."""
    text = (URDF / "planar_2r.urdf").read_text().replace('effort="50"', 'effort="0.95"')
    (finding,) = findings(text, "warning", "joint_1") or findings(text, "fatal", "joint_1")
    assert 9.5 < float(finding.what.split()[3 if finding.severity == "fatal" else 4]) <= 9.81


def test_f15_inertia_is_checked_for_both_laws_and_the_link_is_named() -> None:
    (triangle,) = findings(arm_with(inertial(1, 0.01, 0.01, 0.03)), "warning", "b")
    assert "breaks the triangle inequality" in triangle.what
    (negative,) = findings(arm_with(inertial(1, 0.01, 0.01, 0.01, xy=0.02)), "fatal", "b")
    assert "not positive definite" in negative.what


def test_f15_a_bad_link_is_named_even_where_lumping_hides_it() -> None:
    tool = link("tool", inertial(0.5, 0.0001, 0.0001, 0.003, "0.3 0 0"))
    text = robot(*TWO, tool, joint("jt", "b", "tool", "fixed"))
    assert "triangle" in findings(text, "warning", "tool")[0].what
    assert not findings(text, "warning", "b")


def test_f15_massless_links() -> None:
    between = robot(link("base"), link("a", ""), link("b"), *TWO[3:])
    assert "has no mass" in findings(between, "warning", "a")[0].what
    shape = '<visual><geometry><box size="0.1 0.1 0.1"/></geometry></visual>'
    gripper = robot(*TWO, link("tool", shape), joint("jt", "b", "tool", "fixed"))
    assert findings(gripper, "warning", "tool")[0].what == "has a shape but no mass"
    marker = robot(
        *TWO, link("tool", shape.replace("0.1 0.1 0.1", "0.01 0.01 0.01")), joint("jt", "b", "tool", "fixed")
    )
    assert not findings(marker, "warning", "tool")


def test_singular_mass_matrix_names_the_joint() -> None:
    text = arm_with(inertial(1, 0, 0, 0, "0 0 0.1"))  # a point mass on the axis of j2
    (finding,) = findings(text, "fatal", "j2")
    assert "mass matrix is not positive definite" in finding.what
    cured = load_urdf(text).with_armature({"j2": 0.01})
    assert not [f for f in examine(cured) if f.severity == "fatal"]


def test_radius_of_gyration_shows_wrong_units() -> None:
    assert "radius of gyration" in findings(arm_with(inertial(1, 10, 10, 10)), "warning", "b")[0].what
    assert "radius of gyration" in findings(arm_with(inertial(1, 1e-9, 1e-9, 1e-9)), "warning", "b")[0].what


def test_f17_zero_effort_is_fatal_and_missing_limits_are_warned_about() -> None:
    zero = robot(*TWO).replace('effort="30"', 'effort="0"', 1)
    assert findings(zero, "fatal", "j1")[0].what == "effort limit is 0"
    bare = [f.what for f in findings(robot(*TWO).replace(LIMIT, "", 1), "warning", "j1")]
    assert bare == ["has no effort limit", "has no position limits"]
    still = [f.what for f in findings(robot(*TWO).replace(LIMIT, '<limit effort="1" velocity="0"/>'), "warning", "j1")]
    assert still == ["velocity limit is 0", "lower and upper limit are both 0"]


def test_soft_limits_without_gain() -> None:
    soft = '<safety_controller k_velocity="0" soft_lower_limit="-1" soft_upper_limit="1"/>'
    text = robot(*TWO).replace(LIMIT, LIMIT + soft, 1)
    assert "k_velocity=0" in findings(text, "warning", "j1")[0].what
    assert not findings(text.replace('k_velocity="0"', 'k_velocity="10"'), "warning", "j1")


def test_f13_what_is_not_controlled_is_named_with_its_weight() -> None:
    arm = [f"panda_joint{i}" for i in range(1, 8)]
    (found,) = findings((URDF / "panda_hand.urdf").read_text(), "info", "panda_finger_joint1", joints=arm)
    assert found.what == "is not controlled: locked at 0, where 0.015 kg hang on it (panda_leftfinger)"
    (outside,) = findings(robot(*TWO), "warning", "j2", locked={"j2": 3.0})
    assert outside.what == "is locked at 3, outside its limits -1 … 2"


def test_mimic_and_missing_tip_are_said() -> None:
    whole = [str(f) for f in examine(robot(*GRIPPER))]
    assert "info: joint 'grip_mirror': follows 'grip' as -2 q + 0.1" in whole
    assert "info: tip: several leaves (left, right); choose a tip for payload and wrench" in whole


@pytest.mark.parametrize(
    "shape",
    [
        '<collision><geometry><box size="0.2 0.1 0.1"/></geometry></collision>',
        '<visual><geometry><cylinder radius="0.05" length="0.2"/></geometry></visual>',
        '<visual><geometry><sphere radius="0.1"/></geometry></visual>',
        '<visual><origin xyz="0.05 0 0" rpy="0 1.57 0"/><geometry><cylinder radius="0.05" length="0.2"/></geometry>'
        "</visual>",
    ],
)
def test_centre_of_mass_far_outside_the_shape(shape: str) -> None:
    assert not findings(arm_with(INERTIAL + shape), "warning", "b")
    (finding,) = findings(arm_with(inertial(1, 0.01, 0.01, 0.01, "1.0 0 0") + shape), "warning", "b")
    assert "outside its shape" in finding.what


def test_shapes_that_cannot_be_measured_are_left_alone() -> None:
    far = inertial(1, 0.01, 0.01, 0.01, "0.9 0 0")
    for geometry in ('<mesh filename="x.stl"/>', "<sphere/>", '<box size="a b c"/>', '<box size="1"/>', ""):
        text = arm_with(far + f"<visual><geometry>{geometry}</geometry></visual>")
        assert not findings(text, "warning", "b")


def test_what_cannot_be_loaded_is_one_fatal_finding() -> None:
    (finding,) = examine(robot(*TWO).replace("revolute", "floating", 1))
    assert (finding.severity, finding.name) == ("fatal", "description")
    assert "joint 'j1' is floating" in finding.what
    assert examine("/no/such/file.urdf")[0].severity == "fatal"


def test_a_model_can_be_examined_too() -> None:
    model = load_urdf(URDF / "panda.urdf")
    assert [f.name for f in examine(model)] == [f"link 'panda_link{i}'" for i in range(1, 8)]
    heavy = model.with_payload(300.0)
    assert any(f.severity == "fatal" and "gravity alone" in f.what for f in examine(heavy))


@given(mutated())
@settings(max_examples=60, deadline=None)
def test_the_doctor_survives_every_patient(text: str) -> None:
    for finding in examine(text):
        assert "\n" not in str(finding)
        assert np.all([finding.name, finding.what])
