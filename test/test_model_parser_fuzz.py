"""Whatever text arrives, load_urdf answers with a model or with one line; never with another error."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_robots import random_robot

from rnea_ros.model.kinematics import frame
from rnea_ros.model.robot import ModelError
from rnea_ros.model.urdf import load_urdf

PANDA = (Path(__file__).parents[1] / "urdf" / "panda_hand.urdf").read_text()
SEEDS = [PANDA] + [random_robot(seed, 5, mimic=True).xml for seed in range(6)]
VALUES = ["", " ", "0", "-1", "1e400", "nan", "inf", "-inf", "1 2", "1 2 3", "0 0 0", "1,5", "x", "é", "1e-320", "0x10",
          "floating", "planar", "fixed", "continuous", "prismatic", "joint_1", "link_1", "base", "1_0"]  # fmt: skip


def load_or_refuse(text: str) -> None:
    try:
        robot = load_urdf(text)
    except ModelError as error:
        assert str(error).strip() and "\n" not in str(error)
        return
    for name in robot.frames:
        assert np.isfinite(frame(robot, np.zeros(robot.n), name)).all()
    assert np.isfinite(robot.total_mass)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A good description in which some elements or attributes are dropped, doubled, moved, renamed or rewritten."""
    root = ElementTree.fromstring(draw(st.sampled_from(SEEDS)))
    for _ in range(draw(st.integers(1, 4))):
        parents = [element for element in root.iter() if len(element)]
        parent = draw(st.sampled_from(parents)) if parents else root
        if not len(parent):
            continue
        child = draw(st.sampled_from(list(parent)))
        action = draw(st.sampled_from(["drop", "double", "move", "rename", "rewrite", "rewrite", "forget", "nest"]))
        if action == "drop":
            parent.remove(child)
        elif action == "double":
            parent.append(child)
        elif action == "move" and child not in list(root.iter("robot")):
            parent.remove(child)
            root.append(child)
        elif action == "rename":
            child.tag = draw(st.sampled_from(["link", "joint", "inertial", "robot", "limit", "mimic", "junk"]))
        elif action == "nest":
            ElementTree.SubElement(child, draw(st.sampled_from(["origin", "axis", "mimic", "inertial", "parent"])))
        elif child.attrib:
            key = draw(st.sampled_from(sorted(child.attrib)))
            if action == "forget":
                del child.attrib[key]
            else:
                child.attrib[key] = draw(st.sampled_from(VALUES) | st.text(max_size=8).filter(str.isprintable))
    return ElementTree.tostring(root, encoding="unicode")


@given(mutated())
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_mutated_descriptions(text: str) -> None:
    load_or_refuse(text)


@given(st.sampled_from(SEEDS[1:]), st.data())
@settings(max_examples=150, deadline=None)
def test_torn_and_overwritten_descriptions(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 40)))
    load_or_refuse(text[:start] + data.draw(st.text(max_size=6)) + text[end:])


@given(st.text(max_size=60) | st.text(max_size=60).map(lambda rest: "<" + rest))
@settings(max_examples=200, deadline=None)
def test_garbage(text: str) -> None:
    load_or_refuse(text)


@given(data=st.binary(max_size=200))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_garbage_files(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "r.urdf"
    path.write_bytes(data)
    with pytest.raises(ModelError):
        load_urdf(path)


@given(st.text(max_size=60))
@settings(max_examples=100, deadline=None)
def test_garbage_inside_xacro(text: str) -> None:
    pytest.importorskip("xacro", reason="xacro (pip install xacro) is not installed")
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    load_or_refuse(
        '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:property name="p" value="1"/>'
        f'<link name="${{{escaped}}}"/></robot>'
    )


def test_deep_and_wide_descriptions() -> None:
    load_or_refuse("<robot>" + "<link>" * 20000 + "</link>" * 20000 + "</robot>")
    inertial = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
    links = "".join(f'<link name="l{i}">{inertial}</link>' for i in range(3000))
    joints = "".join(
        f'<joint name="j{i}" type="{"continuous" if i % 100 == 0 else "fixed"}"><parent link="l{i}"/>'
        f'<child link="l{i + 1}"/></joint>'
        for i in range(2999)
    )
    robot = load_urdf(f'<robot name="long">{links}{joints}</robot>')
    assert robot.n == 30
    assert robot.total_mass == pytest.approx(2999)
