"""`rnea_controller` as a process, over DDS, against `rnea_simulator`."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")
pytest.importorskip("mujoco", reason="needs MuJoCo")

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterType, ParameterValue
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header, String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_ros.dynamics.inverse_dynamics import InverseDynamics
from rnea_ros.model.urdf import load_urdf

URDF = Path(__file__).resolve().parent.parent / "urdf"
HOME = [0.3, -0.4]
ARM = {"robot_description_file": "planar_2r.urdf", "initial_positions": HOME}
CONTROLLER: dict[str, Any] = {
    "robot_description_file": "planar_2r.urdf",
    "gravity_source": "self",
    "feedforward_pd.kp": [75.0, 70.0],
    "feedforward_pd.kd": [10.0, 3.5],
    "latency": 0.004,  # gains that stand the delays of a machine that does much else
    "minimum_rate": 20.0,
}
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
FAST = QoSProfile(depth=50, reliability=ReliabilityPolicy.BEST_EFFORT)


class Client:
    """What a user of the node sees and says; `prefix` is the namespace with its slash."""

    def __init__(self, ros: Any, prefix: str = "") -> None:
        self.ros, self.prefix = ros, prefix
        self.modes: list[str] = []
        self.states: list[JointState] = []
        self.commands: list[Float64MultiArray] = []
        self.heartbeats: list[Header] = []
        self.diagnostics: list[DiagnosticArray] = []
        self.tracking: list[JointState] = []
        subscribe, node = ros.node.create_subscription, f"{prefix}rnea_controller"
        subscribe(String, f"{node}/mode", lambda message: self.modes.append(message.data), LATCHED)
        subscribe(JointState, f"{prefix}joint_states", self.states.append, FAST)
        subscribe(Float64MultiArray, f"{prefix}effort_controller/commands", self.commands.append, FAST)
        subscribe(Header, f"{node}/heartbeat", self.heartbeats.append, FAST)
        subscribe(JointState, f"{node}/tracking", self.tracking.append, FAST)
        subscribe(DiagnosticArray, "/diagnostics", self.diagnostics.append, QoSProfile(depth=10))
        self.trajectories = ros.node.create_publisher(JointTrajectory, f"{node}/joint_trajectory", 1)
        self.references = ros.node.create_publisher(JointTrajectoryPoint, f"{node}/reference", 1)

    @property
    def position(self) -> np.ndarray:
        return np.array(self.states[-1].position)

    def wait_mode(self, mode: str) -> None:
        self.ros.spin_until(lambda: self.modes and self.modes[-1].startswith(mode), f"mode {mode}, have {self.modes}")

    def wait_states(self, count: int) -> None:
        end = len(self.states) + count
        self.ros.spin_until(lambda: len(self.states) >= end, "joint states")

    def ask(self, name: str, kind: Any = Trigger, request: Any = None) -> Any:
        return self.ros.call(kind, f"{self.prefix}rnea_controller/{name}", request)

    def move(self, goal: Any, seconds: float = 0.5, names: list[str] | None = None) -> None:
        self.ros.spin_until(lambda: self.trajectories.get_subscription_count() > 0, "a reader of trajectories")
        point = JointTrajectoryPoint(positions=[float(x) for x in goal], velocities=[0.0] * len(goal))
        point.time_from_start.sec, point.time_from_start.nanosec = divmod(round(seconds * 1e9), 1_000_000_000)
        self.trajectories.publish(JointTrajectory(joint_names=names or ["joint_1", "joint_2"], points=[point]))

    def set(self, **values: list[float] | str) -> Any:
        parameters = []
        for name, value in values.items():
            if isinstance(value, str):
                typed = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=value)
            else:
                typed = ParameterValue(type=ParameterType.PARAMETER_DOUBLE_ARRAY, double_array_value=value)
            parameters.append(ParameterMessage(name=name.replace("__", "."), value=typed))
        request = SetParametersAtomically.Request(parameters=parameters)
        return self.ask("set_parameters_atomically", SetParametersAtomically, request).result


def test_holds_floats_tracks_refuses_stops_and_says_goodbye(ros: Any) -> None:
    client = Client(ros)
    ros.start("simulator", ARM)
    process = ros.start("controller", CONTROLLER)
    client.wait_mode("hold")
    process.wait_for("gravity_source self")
    client.wait_states(300)
    np.testing.assert_allclose(client.position, HOME, atol=1e-3)

    answer = client.ask("gravity_compensation", SetBool, SetBool.Request(data=True))
    assert answer.success and answer.message.startswith("gravity_compensation")
    client.wait_mode("gravity_compensation")
    client.wait_states(300)
    np.testing.assert_allclose(client.position, HOME, atol=1e-3)

    client.move([0.5, -0.2])
    client.wait_mode("tracking")
    client.wait_mode("hold")
    ros.spin_until(lambda: np.abs(client.position - [0.5, -0.2]).max() < 1e-3, "the arm to settle at its goal")

    client.move([0.5, -0.2], names=["joint_1", "elbow"])
    process.wait_for("trajectory: unknown joint 'elbow'; controlled are joint_1, joint_2")
    client.move([0.5, float("nan")])
    process.wait_for("trajectory point 0: position of 'joint_2' is nan")
    assert client.modes[-1] == "hold"

    refused = client.set(feedforward_pd__kp=[70.0, 60.0], feedforward_pd__kq=[1.0])
    assert not refused.successful and "the nearest is 'feedforward_pd.k" in refused.reason
    assert client.set(feedforward_pd__kp=[70.0, 60.0]).successful
    assert not client.set(gravity_source="hardware").successful

    ros.spin_until(lambda: client.tracking and client.diagnostics, "reports")
    status = client.diagnostics[-1].status[0]
    told = {item.key: item.value for item in status.values}
    assert {"joint state rate [Hz]", "command rate [Hz]", "age of the state [ms]", "jitter of the states [ms]"} <= set(
        told
    )
    assert client.heartbeats[-1].frame_id == client.modes[-1]

    assert client.ask("stop").success
    process.interrupt()
    assert process.wait() == 0
    process.wait_for("UNSUPPORTED: no watchdog takes over")
    ros.spin_until(lambda: client.heartbeats[-1].frame_id == "goodbye", "the goodbye")
    gravity = InverseDynamics(load_urdf(URDF / "planar_2r.urdf"), backend="recursion").gravity_torque(client.position)
    np.testing.assert_allclose(client.commands[-1].data, gravity, atol=0.05)
    assert "Traceback" not in process.output


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"gravity_sorce": "self"}, "unknown parameter 'gravity_sorce'; the nearest is 'gravity_source'"),
        ({"gravity_source": ""}, "parameter 'gravity_source' is required"),
        ({"robot_description": "<robot"}, ""),
    ],
)
def test_f21_a_start_that_cannot_work_is_one_line(ros: Any, changes: dict[str, Any], line: str) -> None:
    process = ros.start("controller", {**CONTROLLER, **changes})
    assert process.wait() == 1
    assert line in process.output
    assert "Traceback" not in process.output


def test_f19_f31_lifecycle_in_a_namespace_with_the_description_from_the_topic(ros: Any) -> None:
    client = Client(ros, "left/")
    text = String(data=(URDF / "planar_2r.urdf").read_text())
    ros.node.create_publisher(String, "left/robot_description", LATCHED).publish(text)
    ros.start("simulator", ARM, "-r", "__ns:=/left")
    values = {**CONTROLLER, "robot_description_file": "", "autostart": False}
    process = ros.start("controller", values, "-r", "__ns:=/left")

    def change(number: int) -> bool:
        request = ChangeState.Request(transition=Transition(id=number))
        return bool(client.ask("change_state", ChangeState, request).success)

    ros.spin_until(lambda: change(Transition.TRANSITION_CONFIGURE), "the description")
    client.wait_states(50)
    assert client.modes[-1] == "idle" and not client.commands
    ros.spin_until(lambda: change(Transition.TRANSITION_ACTIVATE), "the activation")
    ros.spin_until(lambda: client.commands, "the first command")
    gravity = InverseDynamics(load_urdf(URDF / "planar_2r.urdf"), backend="recursion").gravity_torque(np.array(HOME))
    np.testing.assert_allclose(client.commands[0].data, gravity, atol=0.02)
    client.wait_mode("hold")
    assert client.ask("get_state", GetState).current_state.label == "active"
    assert change(Transition.TRANSITION_DEACTIVATE)
    client.wait_mode("idle")
    client.wait_states(50)  # what was on the way is here
    count = len(client.commands)
    client.wait_states(100)
    assert len(client.commands) == count  # silent
    ros.spin_until(lambda: change(Transition.TRANSITION_ACTIVATE), "the second activation")
    client.wait_mode("hold")
    process.send(signal.SIGTERM)
    assert process.wait() == 0


def test_f33_others_on_our_topics_are_named(ros: Any) -> None:
    client = Client(ros)
    ros.start("simulator", ARM)
    commander = ros.node.create_publisher(Float64MultiArray, "effort_controller/commands", 1)
    process = ros.start("controller", CONTROLLER)

    def named() -> bool:  # refused at the activation, or told where the other was discovered later
        return any("test" in line and "publishes on effort_controller/commands" in line for line in process.lines)

    ros.spin_until(named, "the name of the other commander")
    ros.node.destroy_publisher(commander)
    client.wait_mode("hold")
    other = ros.node.create_publisher(JointTrajectory, "rnea_controller/joint_trajectory", 1)

    def asked() -> bool:
        client.move(HOME)
        return process.said("joint_trajectory: refused, 2 nodes publish on it: test, test; one must stop")

    ros.spin_until(asked, "the refusal")
    ros.node.destroy_publisher(other)


def test_f34_lost_states_are_a_fault_with_a_record_and_reset_leaves_it(ros: Any, tmp_path: Path) -> None:
    client = Client(ros)
    simulator = ros.start("simulator", ARM)
    process = ros.start("controller", {**CONTROLLER, "history.directory": str(tmp_path / "record")})
    client.wait_mode("hold")
    client.wait_states(200)
    simulator.end()
    client.wait_mode("fault: no joint state for")
    count = len(client.commands)
    ros.spin_until(lambda: len(client.commands) > count + 10, "support while blind")
    gravity = InverseDynamics(load_urdf(URDF / "planar_2r.urdf"), backend="recursion").gravity_torque(client.position)
    np.testing.assert_allclose(client.commands[-1].data, gravity, atol=0.02)
    process.wait_for("cycles are written to")
    with np.load(next((tmp_path / "record").glob("*.npz"))) as record:
        assert record["rows"].shape[1] == len(record["columns"]) == 2 + 5 * 2
        assert "no joint state" in str(record["reason"])
    assert not client.ask("gravity_compensation", SetBool, SetBool.Request(data=True)).success
    ros.start("simulator", ARM)
    client.wait_states(300)
    assert client.ask("reset").success
    client.wait_mode("hold")


def test_f30_simulated_time_runs_pauses_and_is_reset(ros: Any) -> None:
    """The test is the simulation: its clock goes at its own speed, stands still, and begins anew."""
    client = Client(ros)
    clock = ros.node.create_publisher(Clock, "clock", 10)
    joints = ros.node.create_publisher(JointState, "joint_states", 10)
    process = ros.start("controller", {**CONTROLLER, "use_sim_time": True, "rate": 200.0})
    now = 100.0

    def advance(seconds: float = 0.005) -> None:
        nonlocal now
        now += seconds
        stamp = Time(sec=int(now), nanosec=int(now % 1.0 * 1e9))
        clock.publish(Clock(clock=stamp))
        message = JointState(name=["joint_2", "joint_1"], position=HOME[::-1], velocity=[0.0, 0.0])
        message.header.stamp = stamp
        joints.publish(message)

    def simulated_until(mode: str) -> None:
        def reached() -> bool:
            advance()
            return bool(client.modes) and client.modes[-1] == mode

        ros.spin_until(reached, f"mode {mode} in simulated time")

    simulated_until("hold")
    count = len(client.commands)
    end = time.monotonic() + 0.5  # paused: much longer than any time-out
    ros.spin_until(lambda: time.monotonic() > end, "half a second")
    assert client.modes[-1] == "hold"
    now = 1.0

    def jumped() -> bool:
        advance()
        return bool(process.said("the clock jumped"))

    ros.spin_until(jumped, "the jump")
    simulated_until("hold")
    assert len(client.commands) > count
    assert "fault" not in process.output


def test_dry_run_commands_nothing(ros: Any) -> None:
    client = Client(ros)
    ros.start("simulator", ARM)
    process = ros.start("controller", {**CONTROLLER, "dry_run": True})
    client.wait_mode("hold")
    ros.spin_until(lambda: client.tracking, "tracking")
    client.wait_states(100)
    assert not client.commands and not client.heartbeats
    assert process.said("DRY RUN")
