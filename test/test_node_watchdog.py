"""`rnea_watchdog`, `rnea_controller` and `rnea_simulator` as processes over DDS: one ends, and the arm must not fall.

Every end is repeated twice, twenty times with --full. Detection times are from the signal to the stamp of the first
status that says active.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")
pytest.importorskip("mujoco", reason="needs MuJoCo")

from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
from watched_arm import GAINS, HOME, URDF

from rnea_ros.control import checks
from rnea_ros.control.watchdog import braking_rate
from rnea_ros.dynamics.inverse_dynamics import InverseDynamics
from rnea_ros.model.urdf import load_urdf
from rnea_ros.nodes.wire import JointStateDecoder

START = [float(value) for value in HOME["panda"]]
PANDA = {"robot_description_file": "panda.urdf", "gravity_source": "self"}
SIMULATOR = {
    "robot_description_file": "panda.urdf",
    "initial_positions": START,
    "encoder_noise": 1e-5,
    "velocity_noise": 3e-4,
}
CONTROLLER = {**PANDA, **GAINS["panda"], "history.seconds": 0.0}
JOINT, FAST = 3, 0.9  # the one that moves while tracking, and the speed at which its controller ends, rad/s
STILL = 1e-3  # rad
SLACK = 0.04  # s, by which on a busy machine what this process sees is late, or the loop is
LATCHED = QoSProfile(depth=20, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
SENSOR = QoSProfile(depth=50, reliability=ReliabilityPolicy.BEST_EFFORT)


@pytest.fixture(scope="module")
def detections(request: pytest.FixtureRequest) -> Iterator[list[float]]:
    """s, collected over the file and printed at its end."""
    found: list[float] = []
    yield found
    if found:
        line = (
            f"watchdog: detection time median {np.median(found) * 1e3:.1f} ms, 99th percentile "
            f"{np.percentile(found, 99) * 1e3:.1f} ms, longest {max(found) * 1e3:.1f} ms, of {len(found)}"
        )
        with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
            print(f"\n{line}")


class Cell:
    """The three processes, seen from outside."""

    def __init__(self, ros: Any) -> None:
        self.ros = ros
        self.statuses: list[tuple[float, str]] = []  # wall time s, status
        self.mode = ""
        self.stalls = 0  # controllers that lived and were silent too long
        self.position, self.velocity = np.array(START), np.zeros(7)
        self.samples: list[np.ndarray] = []
        self._decoder = JointStateDecoder()
        node = ros.node
        node.create_subscription(JointState, "rnea_watchdog/status", self._on_status, LATCHED)
        node.create_subscription(JointState, "joint_states", self._on_state, SENSOR, raw=True)
        node.create_subscription(String, "rnea_controller/mode", self._on_mode, LATCHED)
        self._trajectory = node.create_publisher(JointTrajectory, "rnea_controller/joint_trajectory", 1)
        self._reset = node.create_client(Trigger, "rnea_controller/reset")
        self.simulator = ros.start("simulator", SIMULATOR)
        self.watchdog = ros.start("watchdog", PANDA)
        self.controller = ros.start("controller", CONTROLLER)
        self.until_status("watching")

    def _on_status(self, message: JointState) -> None:
        stamp = message.header.stamp
        self.statuses.append((stamp.sec + stamp.nanosec * 1e-9, message.header.frame_id))

    def _on_mode(self, message: String) -> None:
        self.mode = message.data

    def _on_state(self, data: bytes) -> None:
        self._decoder.decode(data)
        self.position = self._decoder.position.copy()
        self.velocity = self._decoder.velocity.copy()
        self.samples.append(self.position)

    @property
    def status(self) -> str:
        return self.statuses[-1][1] if self.statuses else ""

    def until_status(self, text: str) -> None:
        self.ros.spin_until(lambda: self.status == text, f"the watchdog to be {text}")

    def until_still(self) -> None:
        self.ros.spin_until(lambda: np.abs(self.velocity).max() < 0.01, "the arm to stand still")

    def watch(self, count: int) -> np.ndarray:
        """(count, n) positions of the next states."""
        self.samples.clear()
        self.ros.spin_until(lambda: len(self.samples) >= count, f"{count} joint states")
        return np.array(self.samples)

    def set_out(self, mode: str) -> None:
        """Bring the arm into a mode; while tracking, to speed. Begin anew where a stall of this machine ended it."""
        while True:
            self.until_status("watching")
            if self.mode.startswith("fault"):
                self._insist(lambda: None, lambda: not self.mode.startswith("fault"))
            self._set_out(mode)
            if self.status == "watching" and not self.mode.startswith("fault"):
                return
            self.stalls += 1
            assert self.stalls < 30, "it takes over from a controller that lives\n" + self.outputs()

    def _set_out(self, mode: str) -> None:
        if mode == "float":
            self._float()
        self.watch(100)
        self.until_still()
        if mode == "tracking":
            goal = self.position.copy()
            goal[JOINT] += 0.6 if goal[JOINT] < START[JOINT] + 0.3 else -0.6
            point = JointTrajectoryPoint(positions=goal, velocities=[0.0] * 7, accelerations=[0.0] * 7)
            point.time_from_start.sec, point.time_from_start.nanosec = 1, 100_000_000
            names = [f"panda_joint{i}" for i in range(1, 8)]
            trajectory = JointTrajectory(joint_names=names, points=[point])
            self._insist(lambda: self._trajectory.publish(trajectory), lambda: np.abs(self.velocity).max() > 0.1)
            self.ros.spin_until(self._under_way, "the arm at speed")

    def _under_way(self) -> bool:
        stalled = self.status == "active" or self.mode.startswith("fault")
        return stalled or abs(self.velocity[JOINT]) > FAST

    def _float(self) -> None:
        client = self.ros.node.create_client(SetBool, "rnea_controller/gravity_compensation")
        answers: list[bool] = []

        def ask() -> None:
            client.call_async(SetBool.Request(data=True)).add_done_callback(
                lambda done: answers.append(done.result().success)
            )

        self._insist(ask, lambda: any(answers))

    def _insist(self, ask: Callable[[], None], granted: Callable[[], bool]) -> None:
        """A new controller is found in its own time, and for a while a killed one still is; it may wait, or be in a
        fault after a stall."""
        for _ in range(50):
            self._reset.call_async(Trigger.Request())
            ask()
            self.watch(200)
            if granted():
                return
        raise AssertionError(self.outputs())

    def end_controller(self, how: signal.Signals) -> float:
        """Send the signal. Returns the detection time, s."""
        sent = time.time()
        self.controller.send(how)
        self.ros.spin_until(lambda: self._active_since(sent), "the watchdog to take over")
        return self._active_since(sent)[0] - sent

    def _active_since(self, sent: float) -> list[float]:
        return [when for when, status in self.statuses if when >= sent and status == "active"]

    def outputs(self) -> str:
        return "\n".join(process.output for process in self.ros.processes)

    def bring_back(self, how: signal.Signals) -> None:
        if how == signal.SIGSTOP:
            self.controller.send(signal.SIGCONT)
        else:
            self.controller.wait()
            self.controller = self.ros.start("controller", CONTROLLER)
        self.until_status("watching")


@pytest.fixture
def cell(ros: Any) -> Cell:
    return Cell(ros)


def overrun_bound(position: np.ndarray, velocity: np.ndarray, detection: float) -> float:
    """rad: speed × (detection time + 1 / braking rate + half the time in which the rate limit lets the torque come)."""
    dynamics = InverseDynamics(load_urdf(URDF / "panda.urdf"), backend="python")
    limit = np.full(7, 500.0)
    rate = braking_rate(checks.survey(dynamics).inertia, limit)
    torque = np.abs(rate * dynamics.mass_matrix(position) @ velocity)
    return float(np.abs(velocity).max() * (detection + 1.0 / rate + 0.5 * (torque / limit).max()))


REPEATS = [pytest.param(2, id="twice"), pytest.param(20, id="twenty", marks=pytest.mark.full)]


@pytest.mark.parametrize("repeats", REPEATS)
@pytest.mark.parametrize(
    # how far a moving arm overruns also depends on how busy the machine is
    "mode",
    ["hold", "float", pytest.param("tracking", marks=pytest.mark.full)],
)
def test_f03_the_arm_is_carried_when_its_controller_ends(
    cell: Cell, detections: list[float], mode: str, repeats: int
) -> None:
    for _ in range(repeats):
        for how in (signal.SIGSTOP, signal.SIGKILL, signal.SIGINT):
            cell.set_out(mode)
            place, speed = cell.position, cell.velocity
            detection = cell.end_controller(how)
            if how != signal.SIGINT:
                detections.append(detection)
            moved = np.abs(cell.watch(400) - place).max()
            bound = STILL if mode != "tracking" else overrun_bound(place, speed, detection + SLACK)
            assert moved <= bound, f"{how.name} in {mode}: moved {moved:.5f} rad, at most {bound:.5f}"
            cell.until_still()
            place = cell.position
            cell.bring_back(how)
            moved = np.abs(cell.watch(300) - place).max()
            assert moved <= (2.0 * STILL if mode != "tracking" else 0.02), f"handback after {how.name} in {mode}"


def test_the_controller_ends_first_and_then_the_watchdog(cell: Cell) -> None:
    # Frozen while watching, and going on: the controller keeps the arm.
    cell.set_out("hold")
    place = cell.position
    cell.watchdog.send(signal.SIGSTOP)
    cell.watch(300)
    cell.watchdog.send(signal.SIGCONT)
    assert np.abs(cell.watch(300) - place).max() < STILL
    assert not cell.watchdog.said("carries the arm")

    # Interrupted, it stays; the controller leaves; frozen while carrying, and going on, it carries the arm again.
    cell.watchdog.send(signal.SIGINT)
    cell.controller.send(signal.SIGINT)
    cell.until_status("active")
    assert cell.controller.wait() == 0 and not cell.controller.said("UNSUPPORTED")
    cell.watchdog.send(signal.SIGSTOP)
    cell.watch(200)
    count = len(cell.statuses)
    cell.watchdog.send(signal.SIGCONT)
    cell.ros.spin_until(lambda: "active" in [status for _, status in cell.statuses[count:]], "the watchdog again")
    cell.watch(300)
    cell.until_still()  # while both were away the arm had the last torque, with the noise of a velocity in it
    assert np.abs(cell.position - place).max() < 0.02

    # Released, an interrupted one ends.
    assert cell.ros.call(Trigger, "rnea_watchdog/release").success
    assert cell.watchdog.wait() == 0
    assert cell.watchdog.said("interrupted while watching: stays") and cell.watchdog.said("the arm will fall")


def test_the_watchdog_ends_first_and_then_nobody_takes_over(cell: Cell) -> None:
    cell.set_out("hold")
    place = cell.position
    cell.watchdog.send(signal.SIGTERM)
    assert cell.watchdog.wait() == 0
    assert np.abs(cell.watch(300) - place).max() < STILL
    cell.controller.send(signal.SIGINT)
    assert cell.controller.wait() == 0
    assert cell.controller.said("UNSUPPORTED")
    assert np.abs(cell.watch(100) - place).max() < STILL


@pytest.mark.parametrize(
    ("parameters", "line"),
    [
        ({"robot_description_file": "panda.urdf"}, "parameter 'gravity_source' is required"),
        ({"gravity_source": "self", "robot_description_file": "pander.urdf"}, "pander.urdf"),
        ({**PANDA, "detection_tme": 0.02}, "unknown parameter 'detection_tme'; the nearest is 'detection_time'"),
        ({**PANDA, "braking.damping": [1000.0]}, "makes the loop diverge"),
        ({**PANDA, "feedforward_pd.kp": [1.0], "detection_time": -1.0}, "parameter 'detection_time' is -1"),
    ],
)
def test_bad_parameters_end_with_one_line(ros: Any, parameters: dict[str, Any], line: str) -> None:
    process = ros.start("watchdog", parameters)
    assert process.wait() == 1
    assert line in process.output and "Traceback" not in process.output


def test_a_watchdog_that_saw_no_controller_does_nothing_and_an_interrupt_ends_it(ros: Any) -> None:
    process = ros.start("watchdog", PANDA)
    process.wait_for("detection time")
    names: list[str] = []
    ros.node.create_subscription(JointState, "rnea_watchdog/status", lambda m: names.append(m.header.frame_id), LATCHED)
    ros.spin_until(lambda: len(names) >= 3, "some statuses")
    assert set(names) == {"standby"}
    os.kill(process.pid, signal.SIGINT)
    assert process.wait() == 0
