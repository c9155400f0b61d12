"""What load_urdf makes of a description: order, locking, tip, limits, friction, and what it refuses, by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rnea_ros.model.robot import Friction, ModelError
from rnea_ros.model.urdf import load_urdf

URDF = Path(__file__).parents[1] / "urdf"
INERTIAL = (
    '<inertial><origin xyz="0.1 0 0"/><mass value="1"/>'
    '<inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial>'
)
LIMIT = '<limit lower="-1" upper="2" effort="30" velocity="4"/>'


def link(name: str, inertial: str = INERTIAL) -> str:
    return f'<link name="{name}">{inertial}</link>'


def joint(name: str, parent: str, child: str, kind: str = "revolute", inner: str = LIMIT) -> str:
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><axis xyz="0 0 1"/>'
        f"{inner}</joint>"
    )


def robot(*elements: str) -> str:
    return '<robot name="r">' + "".join(elements) + "</robot>"


TWO = (link("base"), link("a"), link("b"), joint("j1", "base", "a"), joint("j2", "a", "b"))
GRIPPER = (
    *TWO,
    link("left"),
    link("right"),
    joint("grip", "b", "left", "prismatic"),
    joint("grip_mirror", "b", "right", "prismatic", LIMIT + '<mimic joint="grip" multiplier="-2" offset="0.1"/>'),
)


def test_order_is_from_the_root_outwards_and_then_as_written() -> None:
    text = robot(link("base"), link("a"), link("b"), link("c"), joint("to_c", "a", "c"), joint("to_b", "base", "b"),
                 joint("to_a", "base", "a"))  # fmt: skip
    model = load_urdf(text)
    assert model.joint_names == ("to_b", "to_a", "to_c")
    assert [body.name for body in model.bodies] == ["b", "a", "c"]
    assert model.leaves == ("b", "c")
    assert model.body_index("c") == 2


def test_chosen_joints_set_the_order_of_coordinates() -> None:
    model = load_urdf(robot(*TWO), joints=["j2", "j1"])
    assert model.joint_names == ("j2", "j1")
    assert [(body.name, body.joint) for body in model.bodies] == [("a", 1), ("b", 0)]


def test_locked_joints_are_recorded_and_leave_fewer_bodies() -> None:
    model = load_urdf(robot(*TWO), joints=["j1"])
    assert (model.n, len(model.bodies), model.locked) == (1, 1, {"j2": 0.0})
    turned = load_urdf(robot(*TWO), locked={"j2": np.pi / 2})
    np.testing.assert_allclose(turned.bodies[0].com, [0.05, 0.05, 0.0])


def test_limits_and_their_absence() -> None:
    model = load_urdf(
        robot(
            link("base"),
            link("a"),
            link("b"),
            link("c"),
            link("d"),
            joint("full", "base", "a"),
            joint("turning", "a", "b", "continuous", '<limit effort="0" velocity="5"/>'),
            joint("bare", "b", "c", inner=""),
            joint("slide", "c", "d", "prismatic", '<limit lower="-0.1" effort="3"/>'),
        )  # fmt: skip
    )
    np.testing.assert_array_equal(model.lower, [-1, -np.inf, -np.inf, -0.1])
    np.testing.assert_array_equal(model.upper, [2, np.inf, np.inf, 0])  # URDF: what is missing beside the other is 0
    np.testing.assert_array_equal(model.effort_limits, [30, 0, np.inf, 3])
    np.testing.assert_array_equal(model.velocity_limits, [4, 5, np.inf, np.inf])
    np.testing.assert_array_equal(model.continuous, [False, True, False, False])


def test_friction_comes_from_dynamics_unless_told_not_to() -> None:
    inner = LIMIT + '<dynamics damping="0.5" friction="0.2"/>'
    mimic = LIMIT + '<dynamics damping="3" friction="0.3"/><mimic joint="j1" multiplier="-2"/>'
    text = robot(*TWO[:3], joint("j1", "base", "a", inner=inner), joint("j2", "a", "b", inner=mimic))
    model = load_urdf(text)
    # a follower at −2 q̇ brakes with its own torque, twice as strong at the joint that it follows
    np.testing.assert_allclose(model.friction.viscous, [0.5 + 4 * 3])
    np.testing.assert_allclose(model.friction.coulomb, [0.2 + 2 * 0.3])
    assert not load_urdf(text, friction=False).friction.viscous.any()


def test_axis_is_normalised_and_defaults_to_x() -> None:
    text = robot(*TWO).replace('<axis xyz="0 0 1"/>', '<axis xyz="0 3 4"/>', 1)
    text = text.replace('<axis xyz="0 0 1"/>', "")
    first, second = load_urdf(text).bodies
    np.testing.assert_allclose(first.axis, [0, 0.6, 0.8])
    np.testing.assert_allclose(second.axis, [1, 0, 0])


def test_f26_mimic_is_folded_and_said() -> None:
    model = load_urdf(robot(*GRIPPER))
    assert model.joint_names == ("j1", "j2", "grip")
    assert model.mimics == {"grip_mirror": ("grip", -2.0, 0.1)}
    held = load_urdf(robot(*GRIPPER), locked={"grip": 0.3})
    assert held.locked == {"grip": 0.3, "grip_mirror": pytest.approx(-0.5)}
    np.testing.assert_allclose(held.frames["right"].translation, [0, 0, -0.5])


def test_f26_chained_mimics_follow_the_last() -> None:
    second = joint("j2", "a", "b", inner='<mimic joint="j1" multiplier="3" offset="0.5"/>')
    third = joint("j3", "b", "c", inner='<mimic joint="j2" multiplier="2" offset="1"/>')
    text = robot(*TWO[:4], second, link("c"), third)
    assert load_urdf(text).mimics == {"j2": ("j1", 3.0, 0.5), "j3": ("j1", 6.0, 2.0)}


def test_tip_is_the_end_of_the_only_chain_or_must_be_chosen() -> None:
    flange = (link("flange", ""), joint("jf", "b", "flange", "fixed"))
    tool = (link("tool", ""), joint("jt", "flange", "tool", "fixed"))
    camera = (link("camera", ""), joint("jc", "flange", "camera", "fixed"))
    assert load_urdf(robot(*TWO)).tip == "b"
    assert load_urdf(robot(*TWO, *flange, *tool)).tip == "tool"
    assert load_urdf(robot(*TWO, *flange, *tool, *camera)).tip == "flange"
    assert load_urdf(robot(*TWO, *flange, *tool, *camera), tip="camera").tip == "camera"
    several = load_urdf(robot(*GRIPPER))
    assert several.tip is None
    with pytest.raises(ModelError, match=r"several leaves \(left, right\)"):
        _ = several.tip_frame
    with pytest.raises(ModelError, match="unknown frame 'nowhere'"):
        load_urdf(robot(*TWO), tip="nowhere")
    with pytest.raises(ModelError, match="tip 'base' is fixed to the base"):
        load_urdf(robot(*TWO), tip="base")


def test_tilted_world_joint_goes_into_the_first_body() -> None:
    model = load_urdf(URDF / "planar_2r.urdf")
    np.testing.assert_array_equal(model.bodies[0].rotation, [[1, 0, 0], [0, 0, -1], [0, 1, 0]])
    assert model.frames["base_link"].body == -1


def test_frames_hold_every_link() -> None:
    model = load_urdf(URDF / "panda_hand.urdf", locked={"panda_finger_joint1": 0.0})
    assert len(model.frames) == 13
    with pytest.raises(ModelError, match="'panda_hand' is no body of its own: it is fixed to 'panda_link7'"):
        model.body_index("panda_hand")


def test_links_without_mass_between_links_with_mass_are_fine() -> None:
    model = load_urdf(robot(link("base", ""), link("a", ""), link("b"), *TWO[3:]))
    assert [body.mass for body in model.bodies] == [0.0, 1.0]


def test_parsing_is_silent(capfd: pytest.CaptureFixture[str]) -> None:
    noise = '<transmission name="t"><joint name="j1"/></transmission><gazebo/><ros2_control/><sensor/>'
    noise += '<material name="m"/>'
    load_urdf(robot(*TWO, noise).replace('<link name="a">', '<link name="a" colour="red"><visual><geometry/></visual>'))
    assert capfd.readouterr() == ("", "")


def test_default_namespace_and_byte_order_mark(tmp_path: Path) -> None:
    text = robot(*TWO).replace("<robot ", '<robot xmlns="http://www.ros.org" ')
    assert load_urdf("\ufeff" + text).n == 2
    path = tmp_path / "r.urdf"
    path.write_text('<?xml version="1.0" encoding="utf-8"?>' + text, encoding="utf-8-sig")
    assert load_urdf(path).n == 2
    assert load_urdf('<?xml version="1.0" encoding="utf-8"?>\n' + text).n == 2


def changed(old: str, new: str) -> str:
    assert old in robot(*TWO)
    return robot(*TWO).replace(old, new)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "robot description is empty"),
        ("<robot", "not well-formed XML"),
        ("<sdf/>", "root element is <sdf>"),
        (robot(), "has no link"),
        (robot(link("base")), "no joint that moves"),
        (robot(*TWO, link("a")), "link 'a' stands there twice"),
        (robot(*TWO, link("c"), joint("j1", "b", "c")), "joint 'j1' stands there twice"),
        (robot(*TWO, joint("j3", "b", "a")), "link 'a' is the child of two joints, 'j1' and 'j3'"),
        (robot(*TWO, joint("j3", "b", "base")), "closed loop"),
        (robot(*TWO, link("c"), link("d"), joint("j3", "c", "d"), joint("j4", "d", "c")),
         "'j3' is part of a closed loop"),
        (robot(*TWO, link("c")), r"2 roots \(base, c\)"),
        (robot(*TWO[:3], TWO[3], joint("j2", "a", "nowhere")), "joint 'j2': unknown child link 'nowhere'"),
        (changed('name="j1" type="revolute"', 'name="j1" type="floating"'), "joint 'j1' is floating"),
        (changed('name="j1" type="revolute"', 'name="j1" type="planar"'), "joint 'j1' is planar"),
        (changed('name="j1" type="revolute"', 'name="j1" type="ball"'), "joint 'j1': .*Invalid joint type: ball"),
        (changed('name="j1" type="revolute"', 'name="j1"'), "j1.*type"),
        (changed('name="j1" type', "type"), "a <joint> has no name"),
        (changed('<axis xyz="0 0 1"/>', '<axis xyz="0 0 0"/>'), r"joint 'j1': axis \(0 0 0\) has no direction"),
        (changed('<axis xyz="0 0 1"/>', '<axis xyz="0 nan 1"/>'), "joint 'j1': axis is not finite"),
        (changed('<axis xyz="0 0 1"/>', '<axis xyz="0 1"/>'), "joint 'j1': .*length"),
        (changed('<axis xyz="0 0 1"/>', '<axis xyz="a b c"/>'), "joint 'j1': .*float: 'a'"),
        (changed('lower="-1"', 'lower="3"'), "joint 'j1': lower limit 3 is above upper limit 2"),
        (changed('effort="30"', 'effort="nan"'), "joint 'j1': limit is not a number"),
        (changed('effort="30"', 'effort="-30"'), "joint 'j1': effort and velocity limits must not be negative"),
        (changed(LIMIT, LIMIT + LIMIT), "joint 'j1': <limit> stands there twice"),
        (changed(LIMIT, LIMIT + '<mimic joint="jx"/>'), "joint 'j1' mimics the unknown joint 'jx'"),
        (changed(LIMIT, LIMIT + '<mimic joint="j1"/>'), "joint 'j1' mimics 'j1', which mimics it in turn"),
        (changed(LIMIT, LIMIT + '<dynamics damping="-1"/>'), "joint 'j1': damping and friction must not be negative"),
        (changed('<mass value="1"/>', ""), "link 'base': <inertial> without <mass>|base.*mass"),
        (changed('<mass value="1"/>', '<mass value="-1"/>'), r"link 'base': mass is negative \(-1 kg\)"),
        (changed('<mass value="1"/>', '<mass value="inf"/>'), "link 'base': mass is not finite"),
        (changed('ixx="0.01"', 'ixx="nan"'), "link 'base': inertia is not finite"),
        (changed('ixx="0.01"', ""), "base.*ixx"),
        (changed('xyz="0.1 0 0"', 'xyz="0.1 0"'), "base.*origin"),
        (robot(link("base"), link("a"), link("b", ""), *TWO[3:]),
         "link 'b' has no <inertial>.*joint 'j2' would move nothing"),
        (robot(link("base"), link("a"), link("b", INERTIAL.replace('"1"', '"0"').replace("0.01", "0")), *TWO[3:]),
         "link 'b' has mass 0"),
        ("/no/such/file.urdf", "cannot read robot description '/no/such/file.urdf'"),
        ("x" * 5000, "cannot read robot description"),
        ("a\0b", "cannot read robot description"),
    ],
)  # fmt: skip
def test_what_cannot_be_loaded_is_refused_in_one_line_that_names_it(text: str, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        load_urdf(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"joints": ["gripp"]}, "joints: unknown joint 'gripp'; did you mean"),
        ({"joints": ["elbow"]}, "joints: unknown joint 'elbow'; the robot has j1, j2, grip, grip_mirror"),
        ({"joints": ["j1", "j1"]}, "joint 'j1' is named twice"),
        ({"joints": "j1"}, "expected a list of joint names"),
        ({"joints": [1]}, "expected joint names, not 1"),
        ({"joints": []}, "no joint to control"),
        ({"joints": ["grip_mirror"]}, "'grip_mirror' mimics 'grip'; name that one"),
        ({"locked": {"grip_mirror": 0}}, "'grip_mirror' mimics 'grip'"),
        ({"locked": {"nope": 0}}, "locked: unknown joint 'nope'"),
        ({"locked": {"grip": float("nan")}}, "joint 'grip': locked position is not finite"),
        ({"locked": {"grip": "open"}}, "joint 'grip': locked position is not a number"),
        ({"joints": ["grip"], "locked": {"grip": 0}}, "'grip' is both controlled and locked"),
        ({"locked": {"j1": 0, "j2": 0, "grip": 0}}, "every joint is locked"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        load_urdf(robot(*GRIPPER), **arguments)


XACRO = """<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:arg name="prefix" default=""/>
  <xacro:arg name="mass" default="1"/>
  <xacro:macro name="part" params="name">
    <link name="$(arg prefix)${name}"><inertial><mass value="$(arg mass)"/>
      <inertia ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"/></inertial></link>
  </xacro:macro>
  <xacro:part name="base"/><xacro:part name="arm"/>
  <joint name="$(arg prefix)j" type="continuous">
    <parent link="$(arg prefix)base"/><child link="$(arg prefix)arm"/>
  </joint>
</robot>"""


def test_xacro_is_expanded_with_arguments(tmp_path: Path) -> None:
    pytest.importorskip("xacro", reason="xacro (pip install xacro) is not installed")
    path = tmp_path / "r.urdf.xacro"
    path.write_text(XACRO)
    assert load_urdf(XACRO).joint_names == ("j",)
    model = load_urdf(path, xacro_args={"prefix": "left_", "mass": "2.5"})
    assert (model.joint_names, model.total_mass) == (("left_j",), 2.5)
    with pytest.raises(ModelError, match="xacro cannot expand the description.*unknown"):
        load_urdf(XACRO.replace('<xacro:part name="base"/>', "<xacro:unknown/>"))


def test_a_left_over_xacro_namespace_needs_no_xacro(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xacro", None)
    text = robot(*TWO).replace("<robot ", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" ')
    assert load_urdf(text).n == 2
    with pytest.raises(ModelError, match="install the xacro package"):
        load_urdf(XACRO)


def test_model_cannot_be_changed() -> None:
    model = load_urdf(robot(*TWO))
    for array in (model.lower, model.armature, model.bodies[0].com, model.frames["a"].rotation, model.friction.viscous):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    with pytest.raises(TypeError):
        model.frames["x"] = model.frames["a"]  # type: ignore[index]


def test_armature_and_friction_make_new_models() -> None:
    model = load_urdf(robot(*TWO))
    assert list(model.with_armature({"j2": 0.3}).armature) == [0.0, 0.3]
    assert list(model.with_armature(0.1).armature) == [0.1, 0.1]
    assert list(model.with_armature([1, 2]).armature) == [1.0, 2.0]
    assert not model.armature.any()
    for wrong in ([1.0], [-1.0, 0.0], {"jx": 1.0}, [np.nan, 0.0], {"j1": "much"}, ["a", "b"]):
        with pytest.raises(ModelError):
            model.with_armature(wrong)
    with pytest.raises(ModelError, match="friction: 3 values for 2 joints"):
        model.with_friction(Friction.none(3))


def test_import_needs_no_xacro_pinocchio_or_ros() -> None:
    code = (
        "import sys, rnea_ros.model.urdf as u; u.load_urdf(sys.argv[1]);"
        "print([m for m in ('xacro', 'pinocchio', 'rclpy') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code, str(URDF / "panda.urdf")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=URDF.parent, check=True)
    assert done.stdout.strip() == "[]"
