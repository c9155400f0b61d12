"""Controller and watchdog for an arm that ros2_control already drives.

    ros2 launch rnea_ros real.launch.py gravity_source:=hardware params_file:=/path/of/my_arm.yaml

joint_state_broadcaster and forward_command_controller must be active (config/ros2_controllers_*.yaml shows how they are
set up), and the controller takes over the arm as soon as joint states arrive. The description comes from the file, or
from the latched topic `robot_description`. Try `dry_run:=true` first: everything is computed, nothing is commanded.

The watchdog outlives Ctrl-C for as long as it carries the arm; this launch then ends once it is told to let go
(`ros2 service call /rnea_watchdog/release std_srvs/srv/Trigger`), with the brakes on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from launch.actions import DeclareLaunchArgument, OpaqueFunction, Shutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity

SOURCES = {
    "self": "nothing else carries the arm's weight: our command carries all of it",
    "hardware": "the robot adds gravity itself (Franka, UR, KUKA): our command leaves it out",
    "residual": "the robot adds gravity for a mounting that is not the true one: our command is the difference",
}
A_DAY = "86400"  # s


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "gravity_source", default_value="", choices=("", *SOURCES), description="who carries gravity; required"
            ),
            DeclareLaunchArgument("params_file", default_value="", description="parameters of controller and watchdog"),
            DeclareLaunchArgument(
                "robot_description_file", default_value="", description="URDF or xacro; empty: params_file or topic"
            ),
            DeclareLaunchArgument("joint_states", default_value="joint_states", description="topic at the full rate"),
            DeclareLaunchArgument(
                "commands", default_value="effort_controller/commands", description="topic of the effort controller"
            ),
            DeclareLaunchArgument("namespace", default_value="", description="of every node and topic"),
            DeclareLaunchArgument(
                "dry_run", default_value="false", choices=("true", "false"), description="compute, but do not command"
            ),
            OpaqueFunction(function=start),
        ]
    )


def start(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """The nodes, once the arguments are known. Raises RuntimeError, which ends the launch, where one is missing."""
    names = ("gravity_source", "params_file", "robot_description_file", "joint_states", "commands", "dry_run")
    argument = {name: LaunchConfiguration(name).perform(context) for name in names}
    file = argument["params_file"]
    if not argument["gravity_source"] and "gravity_source" not in _parameter_names(file):
        choices = "; ".join(f"gravity_source:={name} if {when}" for name, when in SOURCES.items())
        raise RuntimeError(f"real.launch.py does not guess who carries gravity. Choose {choices}")
    given = {name: argument[name] for name in ("gravity_source", "robot_description_file") if argument[name]}
    common: dict[str, Any] = {
        "package": "rnea_ros",
        "namespace": LaunchConfiguration("namespace"),
        "output": "screen",
        "remappings": [
            ("joint_states", argument["joint_states"]),
            ("effort_controller/commands", argument["commands"]),
        ],
    }
    parameters = [*([file] if file else []), *([given] if given else [])]
    controller = Node(
        executable="rnea_controller",
        parameters=[*parameters, {"dry_run": argument["dry_run"] == "true"}],
        on_exit=Shutdown(reason="rnea_controller has ended"),
        **common,
    )
    watchdog = Node(executable="rnea_watchdog", parameters=parameters, sigterm_timeout=A_DAY, **common)
    return [watchdog, controller] if argument["dry_run"] == "false" else [controller]


def _parameter_names(file: str) -> set[str]:
    """Names of all parameters in a ROS parameter file, whichever node they are for."""
    found: set[str] = set()
    open_parts = [yaml.safe_load(Path(file).expanduser().read_text())] if file else []
    while open_parts:
        part = open_parts.pop()
        if isinstance(part, dict):
            found.update(part)
            open_parts += part.values()
    return found
