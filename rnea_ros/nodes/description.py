"""The robot that the parameters of controller and watchdog describe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rnea_ros.control.settings import check_sizes
from rnea_ros.model.robot import RobotModel
from rnea_ros.model.urdf import load_urdf
from rnea_ros.share import description_source


def described_robot(values: Mapping[str, Any], from_topic: str) -> RobotModel:
    """From parameters by name; `from_topic` is the XML of the latched topic, read where the parameters name none.

    Raises ParameterError or ModelError.
    """
    check_sizes(values)
    xml, file = values["robot_description"], values["robot_description_file"]
    locked = dict(zip(values["locked_joints"], values["locked_positions"], strict=True))
    source = description_source(xml or ("" if file else from_topic), file)
    return load_urdf(source, list(values["joints"]) or None, locked or None, values["tip"] or None)
