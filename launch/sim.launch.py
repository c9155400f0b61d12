"""A simulated arm under our controller, with the watchdog beside it.

    ros2 launch rnea_ros sim.launch.py robot:=panda
    ros2 service call /rnea_controller/gravity_compensation std_srvs/srv/SetBool "{data: true}"

robot_state_publisher and RViz start too where they are installed.
"""

from __future__ import annotations

from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction, RegisterEventHandler, Shutdown
from launch.event_handlers import OnShutdown
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from urdf_parser_py.urdf import URDF

from launch import LaunchContext, LaunchDescription, LaunchDescriptionEntity
from rnea_ros.share import share_file

ROBOTS = ("panda", "panda_hand", "es5")


def generate_launch_description() -> LaunchDescription:
    return LaunchDescription(
        [
            DeclareLaunchArgument("robot", default_value="panda", choices=ROBOTS, description="the arm to simulate"),
            DeclareLaunchArgument("params_file", default_value="", description="empty: config/<robot>.yaml"),
            DeclareLaunchArgument("namespace", default_value="", description="of every node and topic"),
            DeclareLaunchArgument("rviz", default_value="true", choices=("true", "false"), description="show the arm"),
            OpaqueFunction(function=start),
        ]
    )


def start(context: LaunchContext) -> list[LaunchDescriptionEntity]:
    """The nodes, once the arguments are known."""
    argument = {name: LaunchConfiguration(name).perform(context) for name in ("robot", "params_file", "rviz")}
    robot = argument["robot"]
    parameters = argument["params_file"] or str(share_file("config", f"{robot}.yaml"))
    description = share_file("urdf", f"{robot}.urdf").read_text()
    common = {"namespace": LaunchConfiguration("namespace"), "output": "screen"}

    def ours(executable: str, **more: str) -> Node:
        end = Shutdown(reason=f"{executable} has ended")
        return Node(package="rnea_ros", executable=executable, parameters=[parameters], on_exit=end, **common, **more)

    farewell = "ending the simulation: the watchdog calls for the brakes now, as it would at an arm that can fall"
    started: list[LaunchDescriptionEntity] = [
        RegisterEventHandler(OnShutdown(on_shutdown=[LogInfo(msg=farewell)])),
        ours("rnea_simulator"),
        ours("rnea_watchdog", sigterm_timeout="1"),  # here nothing falls when it lets go: the arm ends too
        ours("rnea_controller"),
    ]
    if _installed("robot_state_publisher"):
        model = {"robot_description": description}
        started.append(
            Node(package="robot_state_publisher", executable="robot_state_publisher", parameters=[model], **common)
        )
    else:
        started.append(LogInfo(msg="robot_state_publisher is not installed: no transforms are published"))
    if argument["rviz"] == "true":
        if _installed("rviz2"):
            view = ["-d", str(share_file("config", "arm.rviz")), "-f", URDF.from_xml_string(description).get_root()]
            started.append(Node(package="rviz2", executable="rviz2", arguments=view, **common))
        else:
            started.append(LogInfo(msg="rviz2 is not installed: nothing is shown"))
    return started


def _installed(package: str) -> bool:
    try:
        get_package_prefix(package)
    except PackageNotFoundError:
        return False
    return True
