"""`rnea_simulator` as a process, over DDS."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")
pytest.importorskip("mujoco", reason="needs MuJoCo")

from geometry_msgs.msg import WrenchStamped
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger

from rnea_ros.dynamics.inverse_dynamics import InverseDynamics
from rnea_ros.model.urdf import load_urdf
from rnea_ros.nodes import simulator

URDF = Path(__file__).resolve().parent.parent / "urdf"
HOME = [0.0, -0.8, 0.0, -2.3, 0.0, 1.6, 0.8]
PANDA = {"robot_description_file": "panda.urdf", "initial_positions": HOME}


class Observer:
    """Joint states seen, and a publisher of commands."""

    def __init__(self, ros: Any) -> None:
        self.ros = ros
        self.states: list[JointState] = []
        ros.node.create_subscription(JointState, "joint_states", self.states.append, QoSProfile(depth=100))
        self.commands = ros.node.create_publisher(Float64MultiArray, "effort_controller/commands", 10)
        self.pushes = ros.node.create_publisher(WrenchStamped, "rnea_simulator/push", 10)

    @property
    def position(self) -> np.ndarray:
        return np.array(self.states[-1].position)

    def wait(self, count: int) -> None:
        target = len(self.states) + count
        self.ros.spin_until(lambda: len(self.states) >= target, f"{count} joint states")

    def connected(self) -> bool:
        return self.commands.get_subscription_count() > 0 and self.pushes.get_subscription_count() > 0

    def command(self, effort: Any) -> None:
        self.commands.publish(Float64MultiArray(data=[float(value) for value in effort]))


@pytest.fixture
def observer(ros: Any) -> Observer:
    return Observer(ros)


def test_the_arm_waits_floats_is_pushed_and_survives_bad_commands(ros: Any, observer: Observer) -> None:
    process = ros.start("simulator", PANDA)
    observer.wait(100)
    ros.spin_until(observer.connected, "the simulator's subscriptions")
    first = observer.states[-1]
    assert list(first.name) == [f"panda_joint{i}" for i in range(1, 8)]
    np.testing.assert_array_equal(observer.position, HOME)  # F28: still until the first command
    assert not any(first.velocity)

    gravity = InverseDynamics(load_urdf(URDF / "panda.urdf"), backend="python").gravity_torque(np.array(HOME))
    observer.command(gravity)
    process.wait_for("the arm is free")
    observer.wait(200)
    np.testing.assert_allclose(observer.states[-1].effort, gravity, atol=1e-12)
    assert abs(observer.position - HOME).max() < 1e-6

    observer.command([np.nan] * 7)  # dropped whole
    observer.command([])  # ignored
    observer.wait(50)
    np.testing.assert_allclose(observer.states[-1].effort, gravity, atol=1e-12)

    push = WrenchStamped()
    push.wrench.force.x = 20.0
    observer.pushes.publish(push)
    ros.spin_until(lambda: abs(observer.position - HOME).max() > 1e-3, "the push to move the arm")
    push.header.frame_id = "nowhere"
    observer.pushes.publish(push)
    process.wait_for("unknown link 'nowhere'")

    observer.command(gravity[:6])
    process.wait_for("effort_controller deactivated: command has 6 values for 7 joints")
    observer.command(np.zeros(7))
    observer.wait(50)
    np.testing.assert_allclose(observer.states[-1].effort, gravity, atol=1e-12)
    assert ros.call(Trigger, "rnea_simulator/activate").success
    observer.command(np.zeros(7))
    ros.spin_until(lambda: not any(observer.states[-1].effort), "the command after the activation")


def test_stamps_advance_by_the_period_and_a_pause_is_left_out(ros: Any, observer: Observer) -> None:
    process = ros.start("simulator", PANDA)
    observer.wait(300)
    stamps = np.array([stamp(state) for state in observer.states[-300:]])
    assert np.median(np.diff(stamps)) == 1_000_000

    ros.spin_until(observer.connected, "the simulator's subscriptions")
    observer.command(np.zeros(7))
    ros.spin_until(lambda: any(observer.states[-1].velocity), "the fall")
    process.send(signal.SIGSTOP)
    ros.spin_until(lambda: gap(ros, observer) > 0.5, "half a second of pause")
    process.send(signal.SIGCONT)
    count = len(observer.states)
    observer.wait(20)
    steps = np.diff([stamp(state) for state in observer.states[count - 50 : count + 20]])
    assert steps.max() > 0.4e9, "the pause shows in the stamps"
    before = int(steps.argmax()) + count - 50
    moved = np.array(observer.states[before + 1].position) - np.array(observer.states[before].position)
    speed = np.abs(observer.states[before].velocity).max()
    assert np.abs(moved).max() < 0.01 * max(speed, 1.0), "the physics rushed through the pause"


def stamp(state: JointState) -> int:
    return int(state.header.stamp.sec * 10**9 + state.header.stamp.nanosec)


def gap(ros: Any, observer: Observer) -> float:
    """Seconds since the last state was measured."""
    return float((ros.node.get_clock().now().nanoseconds - stamp(observer.states[-1])) * 1e-9)


@pytest.mark.parametrize(
    ("parameters", "line"),
    [
        ({}, "no robot description"),
        ({"robot_description_file": "pander.urdf"}, "pander.urdf"),
        ({**PANDA, "encoder_noize": 1e-4}, "unknown parameter 'encoder_noize'; the nearest is 'encoder_noise'"),
        ({**PANDA, "mass_scale": -1.0}, "parameter 'mass_scale' is -1"),
        ({**PANDA, "initial_positions": [0.0]}, "initial_positions: expected 7"),
        ({"robot_description": "<robot"}, "not well-formed"),
    ],
)
def test_bad_parameters_end_with_one_line(ros: Any, parameters: dict[str, Any], line: str) -> None:
    process = ros.start("simulator", parameters)
    assert process.wait() == 1
    assert line in process.output and "Traceback" not in process.output


class Machine:
    """Clock, executor and node for `run`: time passes in `spin_once`, and beside it where a test says so."""

    def __init__(self, delays: dict[int, int], steps: int) -> None:
        self.now_ns, self.delays, self.steps = 0, delays, steps
        self.period = 1e-3
        self.stamps: list[int] = []
        self.served = 0
        self.context = self

    def ok(self) -> bool:
        return len(self.stamps) < self.steps

    def get_clock(self) -> Machine:
        return self

    def now(self) -> Machine:
        return self

    @property
    def nanoseconds(self) -> int:
        return self.now_ns

    def step(self, stamp: int) -> None:
        self.stamps.append(stamp)
        self.now_ns += 50_000 + self.delays.get(len(self.stamps), 0)

    def add_node(self, node: Any) -> None:
        pass

    def spin_once(self, timeout_sec: float) -> None:
        self.served += 1
        self.now_ns += round(timeout_sec * 1e9)

    def shutdown(self) -> None:
        pass


@pytest.mark.parametrize(("delay_ms", "jump_ms"), [(0, 1), (12, 1), (500, 500)])
def test_a_hiccup_is_caught_up_and_a_pause_is_left_out(
    monkeypatch: pytest.MonkeyPatch, delay_ms: int, jump_ms: int
) -> None:
    machine = Machine({50: delay_ms * 1_000_000}, steps=100)
    monkeypatch.setattr(simulator, "make_executor", lambda context: machine)
    monkeypatch.setattr(simulator, "freeze_garbage", lambda: None)
    simulator.run(machine)  # type: ignore[arg-type]
    steps = np.diff(machine.stamps) / 1e6
    assert round(steps[49]) == jump_ms
    np.testing.assert_array_equal(np.delete(steps, 49), 1.0)
    assert machine.served >= 99  # messages are served while it is late, too
