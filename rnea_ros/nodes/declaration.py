"""From a table of `control.parameters.Parameter` to declared ROS parameters."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter

from rnea_ros.control.parameters import Parameter, known

ROS_TYPES = {
    "bool": RosParameter.Type.BOOL,
    "integer": RosParameter.Type.INTEGER,
    "double": RosParameter.Type.DOUBLE,
    "string": RosParameter.Type.STRING,
    "double_array": RosParameter.Type.DOUBLE_ARRAY,
    "string_array": RosParameter.Type.STRING_ARRAY,
}

OF_ROS = ("use_sim_time", "start_type_description_service")


def declare(node: Node, table: Sequence[Parameter], tolerated: Collection[str] = ()) -> dict[str, Any]:
    """Declare the parameters of `table` on `node` and return their values by name.

    The node must be made with `automatically_declare_parameters_from_overrides=True`: so what a user gave is known by
    name, and a misspelt name is an error here instead of a parameter without effect. Types stay open for ROS because
    whole numbers serve as doubles; `Parameter.coerced` judges them. Raises ParameterError.

    tolerated: names that belong to another node of this package, which reads the same file.
    """
    by_name = {item.name: item for item in table}
    given = set(node.list_parameters([], 0).names)
    for name in sorted(given.difference(tolerated)):
        if not is_of_ros(name):
            known(name, by_name)
    values = {}
    for item in table:
        value = item.default
        if item.name in given:
            value = _given(node, item)
            node.undeclare_parameter(item.name)
        node.declare_parameter(item.name, _ros_value(item, value), _descriptor(item))
        values[item.name] = value
    return values


def is_of_ros(name: str) -> bool:
    """Whether a parameter is one that rclpy gives to every node."""
    return name in OF_ROS or name.startswith("qos_overrides.")


def _given(node: Node, item: Parameter) -> Any:
    value = node.get_parameter(item.name).value
    if item.kind.endswith("_array") and value is not None and len(value) == 0:
        value = ()  # an empty list has no type of its own in YAML
    return item.coerced(value)


def _ros_value(item: Parameter, value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _descriptor(item: Parameter) -> ParameterDescriptor:
    descriptor = ParameterDescriptor(
        description=f"{item.sentence} [{item.unit}]" if item.unit else item.sentence,
        type=ROS_TYPES[item.kind].value,
        read_only=False,
        dynamic_typing=True,
    )
    if item.kind == "double" and math.isfinite(item.lower) and math.isfinite(item.upper):
        descriptor.floating_point_range = [FloatingPointRange(from_value=item.lower, to_value=item.upper)]
    return descriptor
