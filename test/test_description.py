"""The robot that controller and watchdog take from their parameters."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rnea_ros.control.errors import ParameterError
from rnea_ros.control.parameters import defaults
from rnea_ros.model.errors import ModelError
from rnea_ros.nodes.description import described_robot

PLANAR = (Path(__file__).resolve().parent.parent / "urdf" / "planar_2r.urdf").read_text()


def given(**values: Any) -> dict[str, Any]:
    return {**defaults(), **values}


def test_the_parameters_go_before_the_topic() -> None:
    assert described_robot(given(robot_description_file="es5.urdf"), PLANAR).name == "es5"
    assert described_robot(given(robot_description=PLANAR, robot_description_file="es5.urdf"), "").name == "planar_2r"
    assert described_robot(given(), PLANAR).name == "planar_2r"


def test_joints_are_locked_where_the_parameters_say() -> None:
    robot = described_robot(given(locked_joints=("joint_2",), locked_positions=(0.5,)), PLANAR)
    assert robot.joint_names == ("joint_1",)
    assert robot.locked == {"joint_2": 0.5}


@pytest.mark.parametrize("positions", [(), (0.1, 0.2)])
def test_a_wrong_number_of_locked_positions_is_refused_by_name(positions: tuple[float, ...]) -> None:
    with pytest.raises(ParameterError, match=f"'locked_positions' has {len(positions)} values, expected 1"):
        described_robot(given(locked_joints=("joint_2",), locked_positions=positions), PLANAR)


def test_no_description_at_all_is_one_line() -> None:
    with pytest.raises(ModelError, match="no robot description: set the parameter"):
        described_robot(given(), "")
