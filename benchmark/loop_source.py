"""The arm's side of `loop.py`: sends joint states on an absolute schedule and takes the answers, in one thread.

    python -m benchmark.loop_source MODE PID RATE SECONDS PRIORITY

MODE is `echo`, or the controller's mode in which it is to be measured; PID is the contestant's. Prints as JSON what was
measured. The states stand still, but for a mark in the first joint that is far below an encoder's step.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_ros.control.terms import TERMS
from rnea_ros.nodes.executor import make_executor
from rnea_ros.nodes.realtime import become_real_time, freeze_garbage
from rnea_ros.nodes.transport import leave_out_shared_memory
from rnea_ros.nodes.wire import JointStateEncoder, decode_array, decode_header

JOINTS = [f"panda_joint{i}" for i in range(1, 8)]
HOME = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])
MARK = 1e-9  # rad
KNOCKING = 60.0  # s in which a contestant has to answer
WARM_UP = 1.5  # s
SECOND = 1_000_000_000  # ns
SERVER = "/rnea_controller"


class Source:
    """Sends states at `rate`, Hz. `sent` and `stamps` have ns of each by index, `answers` ns of arrival by index."""

    def __init__(self, rate: float) -> None:
        self.node = rclpy.create_node("source")
        self.executor = make_executor()
        self.executor.add_node(self.node)
        as_the_broadcaster = QoSProfile(depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self.publisher = self.node.create_publisher(JointState, "joint_states", as_the_broadcaster)
        self.subscribe(Float64MultiArray, "effort_controller/commands", self.on_command)
        self.encode = JointStateEncoder(JOINTS).encode
        self.rate = rate
        self.sent: list[int] = []
        self.stamps: list[int] = []
        self.skipped = 0
        self.knocking = True

    def subscribe(self, kind: Any, topic: str, callback: Callable[[bytes], None]) -> None:
        self.node.create_subscription(kind, topic, callback, QoSProfile(depth=1000), raw=True)

    def on_command(self, data: bytes) -> None:
        raise NotImplementedError

    def answers(self) -> dict[int, int]:
        raise NotImplementedError

    def send(self, seconds: float, until: Callable[[], bool] | None = None) -> None:
        """Send states for `seconds`, or until something is so, taking answers between them."""
        position, still = HOME.copy(), np.zeros(len(HOME))
        period = SECOND / self.rate
        start = time.monotonic_ns()
        for tick in range(round(self.rate * seconds)):
            due = start + int(tick * period)
            while (wait := due - time.monotonic_ns()) > 0:
                self.executor.spin_once(timeout_sec=wait * 1e-9)
            if until is not None and until():
                return
            if time.monotonic_ns() - due > period:  # sent now, it would come together with the next
                self.skipped += not self.knocking
                continue
            stamp = time.time_ns()
            position[0] = -MARK if self.knocking else len(self.sent) * MARK
            data = self.encode(stamp, position, still, still)
            if not self.knocking:
                self.stamps.append(stamp)
                self.sent.append(time.monotonic_ns())
            self.publisher.publish(data)
        if until is not None:
            raise SystemExit(f"no answer within {seconds:g} s")

    def measure(self, pid: int, seconds: float) -> dict[str, Any]:
        self.prepare()
        self.knocking = False
        self.send(WARM_UP)
        first, cpu, memory = len(self.sent), cpu_ns(pid), memory_mib(pid)
        self.send(seconds)
        cpu, grown = cpu_ns(pid) - cpu, memory_mib(pid) - memory
        messages = len(self.sent) - first
        counts = self.count()
        answers = self.answers()
        trips = np.array([at - self.sent[index] for index, at in answers.items() if first <= index < first + messages])
        return {
            **counts,
            "trips": (trips * 1e-3).tolist(),
            "late": int((trips > SECOND / self.rate).sum()),
            "skipped": self.skipped,
            "cpu": cpu * 1e-3 / messages,
            "memory": memory,
            "grown": grown,
        }

    def prepare(self) -> None:
        """Until the contestant answers, in the mode in which it is to be measured."""
        raise NotImplementedError

    def count(self) -> dict[str, int]:
        """How many states were sent, answered, and, where only this side knows, read and lost under way."""
        raise NotImplementedError


class EchoSource(Source):
    """Knows a command's state by its first number."""

    def __init__(self, rate: float) -> None:
        super().__init__(rate)
        self.commands: list[tuple[int, bytes]] = []

    def on_command(self, data: bytes) -> None:
        self.commands.append((time.monotonic_ns(), data))

    def answers(self) -> dict[int, int]:
        firsts = [(float(decode_array(data)[0]), at) for at, data in self.commands]
        return {round(first / MARK): at for first, at in firsts if first >= 0.0}

    def prepare(self) -> None:
        self.send(KNOCKING, lambda: bool(self.commands))
        self.send(0.5)

    def count(self) -> dict[str, int]:
        end = time.monotonic() + 0.5
        while (wait := end - time.monotonic()) > 0.0:  # what is still under way
            self.executor.spin_once(timeout_sec=wait)
        return {"sent": len(self.sent), "answered": len(self.answers())}


class ControllerSource(Source):
    """Knows a command's state by the heartbeat that follows it; the controller says in its diagnostics what it read."""

    def __init__(self, rate: float, mode: str, seconds: float) -> None:
        super().__init__(rate)
        self.asked, self.seconds = mode, seconds
        self.mode = ""
        self.command_at = 0
        self.heartbeats: list[tuple[int, int]] = []  # stamp, arrival of the command
        self.diagnostics: list[bytes] = []
        self.subscribe(Header, f"{SERVER}/heartbeat", self.on_heartbeat)
        self.subscribe(DiagnosticArray, "/diagnostics", self.diagnostics.append)
        newest = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        for topic in (*(f"torque/{name}" for name in TERMS), "tracking"):  # somebody reads them
            self.node.create_subscription(JointState, f"{SERVER}/{topic}", lambda data: None, newest, raw=True)
        self.float = self.node.create_client(SetBool, f"{SERVER}/gravity_compensation")
        self.trajectory = self.node.create_publisher(JointTrajectory, f"{SERVER}/joint_trajectory", 1)

    def on_command(self, data: bytes) -> None:
        self.command_at = time.monotonic_ns()

    def on_heartbeat(self, data: bytes) -> None:
        stamp, self.mode = decode_header(data)
        if self.command_at and not self.knocking:
            self.heartbeats.append((stamp, self.command_at))
        self.command_at = 0

    def answers(self) -> dict[int, int]:
        index = {stamp: i for i, stamp in enumerate(self.stamps)}
        first: dict[int, int] = {}
        for stamp, at in self.heartbeats:  # a blind controller answers the same state again
            if stamp in index:
                first.setdefault(index[stamp], at)
        return first

    def prepare(self) -> None:
        self.send(KNOCKING, lambda: bool(self.mode))
        if self.asked == "gravity_compensation":
            self.send(10.0, self.float.service_is_ready)
            self.float.call_async(SetBool.Request(data=True))
        else:
            self.send(10.0, lambda: self.trajectory.get_subscription_count() > 0)
            self.trajectory.publish(self.motion())
        self.send(10.0, lambda: self.mode == self.asked)
        self.send(0.5)

    def motion(self) -> JointTrajectory:
        """A trajectory of equal points, half a second apart, over the whole run."""
        message = JointTrajectory(joint_names=JOINTS)
        for tick in range(1, 2 * round(self.seconds + WARM_UP + 8.0)):
            point = JointTrajectoryPoint(positions=HOME.tolist(), velocities=[0.0] * 7, accelerations=[0.0] * 7)
            point.time_from_start.sec, point.time_from_start.nanosec = tick // 2, SECOND // 2 * (tick % 2)
            message.points.append(point)
        return message

    def count(self) -> dict[str, int]:
        """Between the first and the last diagnostics of the run, which count up to a moment that they name."""
        known = len(self.diagnostics)
        self.send(5.0, lambda: len(self.diagnostics) > known + 1)
        reports = [report for data in self.diagnostics for report in self.told(data)]
        reports = [report for report in reports if report["at"] > self.stamps[0]]
        begin, end = reports[0], reports[-1]
        if self.mode != self.asked:
            raise SystemExit(f"the controller is in mode {self.mode!r}, not {self.asked!r}")
        inside = {i for i, stamp in enumerate(self.stamps) if begin["at"] < stamp <= end["at"]}
        return {
            "sent": len(inside),
            "answered": len(inside & self.answers().keys()),
            "read": end["joint states read"] - begin["joint states read"],
            "lost_under_way": end["joint states lost in transport"] - begin["joint states lost in transport"],
        }

    @staticmethod
    def told(data: bytes) -> list[dict[str, int]]:
        """The controller's counters in a message, and the time in ns at which they held."""
        from rclpy.serialization import deserialize_message

        message = deserialize_message(data, DiagnosticArray)
        at = message.header.stamp.sec * SECOND + message.header.stamp.nanosec
        return [
            {"at": at, **{item.key: int(item.value) for item in status.values if item.key.startswith("joint states ")}}
            for status in message.status
        ]


def cpu_ns(pid: int) -> int:
    """Processor time of all threads so far, ns."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir())


def memory_mib(pid: int) -> float:
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def main(mode: str, pid: int, rate: float, seconds: float, priority: int) -> None:
    leave_out_shared_memory()
    rclpy.init()
    source = EchoSource(rate) if mode == "echo" else ControllerSource(rate, mode, seconds)
    freeze_garbage()
    for refusal in become_real_time(priority):  # it stands for the robot, which is on time
        print(f"source: {refusal}", file=sys.stderr)
    print(json.dumps(source.measure(pid, seconds)))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5]))
