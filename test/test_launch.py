"""The launch files, run by launch itself on a prefix that looks like one that colcon made."""

from __future__ import annotations

import configparser
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

pytest.importorskip("rclpy", reason="needs ROS 2")
pytest.importorskip("launch", reason="launch is not on PyPI; a ROS 2 installation has it")
pytest.importorskip("launch_ros", reason="launch_ros is not on PyPI; a ROS 2 installation has it")

from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_harness import ROOT, Process
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import Trigger

HOME = [0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8]
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
RUN = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import AnyLaunchDescriptionSource
arguments = [tuple(argument.split(":=", 1)) for argument in sys.argv[2:]]
service = LaunchService()
source = AnyLaunchDescriptionSource(sys.argv[1])
service.include_launch_description(
    LaunchDescription([IncludeLaunchDescription(source, launch_arguments=arguments)]))
sys.exit(service.run())
"""


@pytest.fixture
def launch(ros: Any, tmp_path: Path) -> Any:
    """Starts one of our launch files with arguments, as `ros2 launch rnea_ros` does; the process of launch."""
    prefix = tmp_path / "prefix"
    programs, share = prefix / "lib" / "rnea_ros", prefix / "share"
    programs.mkdir(parents=True)
    (share / "ament_index" / "resource_index" / "packages").mkdir(parents=True)
    (share / "ament_index" / "resource_index" / "packages" / "rnea_ros").touch()
    (share / "rnea_ros").symlink_to(ROOT)
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    for line in setup["options.entry_points"]["console_scripts"].split("\n"):
        if "=" in line:
            name, module = (part.strip() for part in line.split("="))
            script = programs / name
            script.write_text(
                f"#!{sys.executable}\nimport sys\nfrom {module.split(':')[0]} import main\nsys.exit(main())\n"
            )
            script.chmod(0o755)
    found = os.pathsep.join([str(prefix), os.environ.get("AMENT_PREFIX_PATH", "")]).rstrip(os.pathsep)
    environment = {**ros.environment, "AMENT_PREFIX_PATH": found, "PYTHONPATH": os.pathsep.join(sys.path)}

    def start(file: str, *arguments: str) -> Process:
        ros.processes.append(Process([sys.executable, "-c", RUN, str(ROOT / "launch" / file), *arguments], environment))
        return ros.processes[-1]

    return start


class Watcher:
    """What a bystander sees of an arm: modes, the newest joint state, the newest command."""

    def __init__(self, ros: Any, namespace: str = "") -> None:
        self.modes: list[str] = []
        self.states: list[JointState] = []
        self.commands: list[Float64MultiArray] = []
        subscribe = ros.node.create_subscription
        subscribe(String, f"{namespace}/rnea_controller/mode", lambda message: self.modes.append(message.data), LATCHED)
        subscribe(JointState, f"{namespace}/joint_states", self.states.append, 10)
        subscribe(Float64MultiArray, f"{namespace}/effort_controller/commands", self.commands.append, 10)


@pytest.mark.parametrize(("robot", "joints"), [("panda", 7), ("es5", 6), ("panda_hand", 7)])
def test_sim_launch_holds_the_arm_and_ends_on_ctrl_c(ros: Any, launch: Any, robot: str, joints: int) -> None:
    pytest.importorskip("mujoco", reason="needs MuJoCo")
    watcher = Watcher(ros)
    process = launch("sim.launch.py", f"robot:={robot}", "rviz:=false")
    ros.spin_until(lambda: "hold" in watcher.modes, "the arm to be held")
    ros.spin_until(lambda: min(len(watcher.commands), len(watcher.states)) > 200, "commands and states")
    assert len(watcher.commands[-1].data) == joints
    parameters = yaml.safe_load((ROOT / "config" / f"{robot}.yaml").read_text())["/**"]
    home = parameters["rnea_simulator"]["ros__parameters"]["initial_positions"]
    np.testing.assert_allclose(watcher.states[-1].position, home, atol=2e-3)
    process.interrupt()
    assert process.wait(30.0) == 0, process.output
    assert "Traceback" not in process.output


def test_sim_launch_in_a_namespace(ros: Any, launch: Any) -> None:
    pytest.importorskip("mujoco", reason="needs MuJoCo")
    watcher = Watcher(ros, "/left")
    launch("sim.launch.py", "namespace:=left", "rviz:=false")
    ros.spin_until(lambda: "hold" in watcher.modes, "the arm to be held")


def test_sim_launch_names_the_robots_it_knows(launch: Any) -> None:
    process = launch("sim.launch.py", "robot:=nao")
    assert process.wait() == 1
    assert "panda" in process.output and "es5" in process.output


def test_f21_real_launch_refuses_without_gravity_source(launch: Any) -> None:
    process = launch("real.launch.py", "robot_description_file:=panda.urdf")
    assert process.wait() == 1
    for choice in ("gravity_source:=self", "gravity_source:=hardware", "gravity_source:=residual"):
        assert choice in process.output
    assert "started with pid" not in process.output


def test_real_launch_drives_an_arm_that_adds_gravity(ros: Any, launch: Any) -> None:
    pytest.importorskip("mujoco", reason="needs MuJoCo")
    arm = {"robot_description_file": "panda.urdf", "initial_positions": HOME, "adds_gravity": True}
    ros.start("simulator", arm, "-r", "joint_states:=franka/joint_states", "-r", "effort_controller/commands:=torque")
    parameters = ros.folder / "arm.yaml"
    parameters.write_text(
        "/**:\n  rnea_controller:\n    ros__parameters:\n      robot_description_file: panda.urdf\n"
        "      feedforward_pd.kp: [24.0, 24.0, 24.0, 24.0, 10.0, 6.0, 2.0]\n"
        "      feedforward_pd.kd: [2.0, 2.0, 2.0, 1.0, 1.0, 1.0, 0.5]\n"
        "  rnea_watchdog:\n    ros__parameters:\n      robot_description_file: panda.urdf\n"
    )
    watcher = Watcher(ros)
    commands: list[Float64MultiArray] = []
    ros.node.create_subscription(Float64MultiArray, "torque", commands.append, 10)
    process = launch(
        "real.launch.py", "gravity_source:=hardware", f"params_file:={parameters}",
        "joint_states:=franka/joint_states", "commands:=torque",
    )  # fmt: skip
    ros.spin_until(lambda: "hold" in watcher.modes and len(commands) > 100, "the arm to be held")
    assert max(abs(value) for value in commands[-1].data) < 1.0, "gravity must not be compensated twice"
    process.interrupt()
    assert process.wait(30.0) == 0, process.output


def test_real_launch_watchdog_outlives_ctrl_c_until_it_is_released(ros: Any, launch: Any) -> None:
    pytest.importorskip("mujoco", reason="needs MuJoCo")
    watcher = Watcher(ros)
    parameters = ROOT / "config" / "panda.yaml"
    ros.start("simulator", {"robot_description_file": "panda.urdf", "initial_positions": HOME})
    process = launch("real.launch.py", f"params_file:={parameters}")
    ros.spin_until(lambda: "hold" in watcher.modes, "the arm to be held")
    process.interrupt()
    ros.spin_until(lambda: process.said("The watchdog carries the arm"), "the watchdog to take over")
    ros.spin_until(lambda: process.said("rnea_controller-2]: process has finished cleanly"), "the controller to end")
    count = len(watcher.commands)
    ros.spin_until(lambda: len(watcher.commands) > count + 200, "commands of the watchdog")
    np.testing.assert_allclose(watcher.states[-1].position, HOME, atol=2e-3)
    assert ros.call(Trigger, "rnea_watchdog/release").success
    assert process.wait(30.0) == 0, process.output


def test_real_launch_dry_run_commands_nothing(ros: Any, launch: Any) -> None:
    pytest.importorskip("mujoco", reason="needs MuJoCo")
    watcher = Watcher(ros)
    ros.start(
        "simulator",
        {"robot_description_file": "panda.urdf", "initial_positions": [0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8]},
    )
    launch("real.launch.py", "gravity_source:=self", f"params_file:={ROOT / 'config' / 'panda.yaml'}", "dry_run:=true")
    ros.spin_until(lambda: "hold" in watcher.modes, "the controller to hold, on paper")
    count = len(watcher.states)
    ros.spin_until(lambda: len(watcher.states) > count + 300, "joint states")
    assert not watcher.commands
