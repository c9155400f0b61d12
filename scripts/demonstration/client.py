"""A ROS node that talks to the controller as any user's program would, and records what goes over the topics."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import WrenchStamped
from hand import Hand, Push
from motion import PickAndPlace
from numpy.typing import NDArray
from processes import Child, Failure, Stalled
from rcl_interfaces.srv import SetParameters
from rclpy.context import Context
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Header, String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_ros.nodes.executor import make_executor
from rnea_ros.nodes.wire import JointStateDecoder, decode_header

Array = NDArray[np.float64]

SECOND = 1_000_000_000  # ns
FOREVER = 2**63 - 1  # ns
CHECK = 0.1  # s between looks at the processes
HELD_UP = 0.005  # s: a heartbeat that comes this late, or with a state this old, was held up by the machine
TERMS = ("gravity", "inertia", "coriolis", "feedback", "command")
RECORD = QoSProfile(depth=2000, reliability=ReliabilityPolicy.BEST_EFFORT)
LATCHED = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
RELIABLE = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)


class Client:
    """Ask the controller, push the arm, record. Everything is served by `spin_until` in the caller's thread."""

    def __init__(self, joints: Sequence[str], domain: int, children: Sequence[Child]) -> None:
        self.joints = tuple(joints)
        self._children = children
        self._context = Context()
        rclpy.init(context=self._context, domain_id=domain)
        self.node = rclpy.create_node("rnea_demonstration", context=self._context)
        self._executor = make_executor(self._context)
        self._executor.add_node(self.node)
        self.mode = ""
        self._next_check = 0.0
        self._states: list[bytes] = []
        self._heartbeats: list[tuple[int, int, str]] = []  # stamp of the state, when the heartbeat came, ns; mode
        self._terms: dict[str, list[bytes]] = {name: [] for name in TERMS}
        subscribe, controller = self.node.create_subscription, "rnea_controller"
        subscribe(JointState, "joint_states", _recorder(self._states), RECORD, raw=True)
        subscribe(Header, f"{controller}/heartbeat", self._on_heartbeat, RECORD, raw=True)
        subscribe(String, f"{controller}/mode", self._on_mode, LATCHED)
        for name in TERMS:
            subscribe(JointState, f"{controller}/torque/{name}", _recorder(self._terms[name]), RECORD, raw=True)
        self._trajectory = self.node.create_publisher(JointTrajectory, f"{controller}/joint_trajectory", RELIABLE)
        self._push = self.node.create_publisher(WrenchStamped, "rnea_simulator/push", QoSProfile(depth=10))

    def close(self) -> None:
        self._executor.shutdown()
        self.node.destroy_node()
        self._context.try_shutdown()

    # Asking

    def gravity_compensation(self, on: bool) -> None:
        self._call(SetBool, "gravity_compensation", SetBool.Request(data=on))

    def hold(self) -> None:
        self._call(Trigger, "hold", Trigger.Request())

    def set_parameters(self, values: Mapping[str, Any]) -> None:
        parameters = [Parameter(name, value=value).to_parameter_msg() for name, value in values.items()]
        answer = self._answer(SetParameters, "set_parameters", SetParameters.Request(parameters=parameters))
        for result in answer.results:
            if not result.successful:
                raise Failure(f"the controller refuses {dict(values)}: {result.reason}")

    def follow(self, motion: PickAndPlace, delay: float = 0.3) -> int:
        """Send the motion; returns the stamp (ns) at which it begins, `delay` s from now."""
        start = time.time_ns() + round(delay * SECOND)
        message = JointTrajectory(joint_names=list(self.joints))
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(start, SECOND)
        rest = [0.0] * len(self.joints)
        for at, position in zip(motion.times, motion.positions, strict=True):
            point = JointTrajectoryPoint(positions=position.tolist(), velocities=rest, accelerations=rest)
            point.time_from_start.sec, point.time_from_start.nanosec = divmod(round(at * SECOND), SECOND)
            message.points.append(point)
        self._trajectory.publish(message)
        return start

    def push(self, hand: Hand, push: Push) -> None:
        """Let the hand push, 100 times a second, and let go."""
        message = WrenchStamped()
        message.header.frame_id = push.link
        vector = message.wrench.force
        start = time.monotonic()
        while (elapsed := time.monotonic() - start) < push.duration:
            position, velocity = self.state()
            vector.x, vector.y, vector.z = hand.force(elapsed, position, velocity).tolist()
            self._push.publish(message)
            self.spin_for(0.01)
        vector.x = vector.y = vector.z = 0.0
        self._push.publish(message)

    def _call(self, kind: Any, name: str, request: Any) -> None:
        answer = self._answer(kind, name, request)
        if not answer.success:
            raise Failure(f"the controller refuses {name}: {answer.message}")

    def _answer(self, kind: Any, name: str, request: Any) -> Any:
        client = self.node.create_client(kind, f"rnea_controller/{name}")
        self.spin_until(client.service_is_ready, f"the service rnea_controller/{name}", 10.0)
        future = client.call_async(request)
        self.spin_until(future.done, f"an answer from rnea_controller/{name}", 10.0)
        self.node.destroy_client(client)
        return future.result()

    # Waiting

    def spin_until(self, condition: Callable[[], Any], what: str, timeout: float) -> None:
        """Serve the topics until the condition holds. Raises Failure after `timeout` s, or if a process has ended."""
        end = time.monotonic() + timeout
        while not condition():
            self._serve(0.02)
            if time.monotonic() > end:
                said = "\n".join(f"{child.name}:\n{child.last_words()}" for child in self._children)
                raise Failure(f"waited {timeout:g} s for {what}; mode {self.mode or 'unknown'}\n{said}")

    def spin_for(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0.0:
            self._serve(min(left, 0.02))

    def _serve(self, seconds: float) -> None:
        self._executor.spin_once(timeout_sec=seconds)
        if time.monotonic() > self._next_check:
            self._next_check = time.monotonic() + CHECK
            for child in self._children:
                child.check()
        if self.mode.startswith("fault"):
            raise self._failure(f"the controller reports {self.mode}", time.time_ns() - SECOND)

    def require(self, mode: str, begin: int, end: int) -> None:
        """Raises Failure where the controller was in another mode for some state with a stamp from `begin` to `end`."""
        others = {said for stamp, _, said in self._heartbeats if begin <= stamp < end and said != mode}
        if others:
            raise self._failure(f"the controller left {mode} for {', '.join(sorted(others))}", begin)

    def _failure(self, line: str, since: int) -> Failure:
        """The failure, and whether the machine is to blame: the loop of 1 kHz was held up `since` then (ns)."""
        came, age = self.commands(since, FOREVER)
        held_up = max(np.diff(came, prepend=came[:1]).max(initial=0) / SECOND, age.max(initial=0.0))
        if held_up > HELD_UP:
            return Stalled(f"this machine held the loop up for {held_up * 1e3:.0f} ms; {line}")
        return Failure(line)

    # The record

    def state(self) -> tuple[Array, Array]:
        """The last measured positions (n,) rad and velocities (n,) rad/s."""
        last = self._states[-1:]
        _, position = _samples(last, self.joints, 0, FOREVER, "position")
        _, velocity = _samples(last, self.joints, 0, FOREVER, "velocity")
        return position[0], velocity[0]

    def recent(self, count: int) -> Array:
        """The last `count` measured positions (count, n) rad, or fewer where there are not so many."""
        return _samples(self._states[-count:], self.joints, 0, FOREVER, "position")[1]

    @property
    def seen(self) -> int:
        """How many joint states so far."""
        return len(self._states)

    def positions(self, begin: int, end: int) -> tuple[Array, Array]:
        """Stamps (N,) s since `begin` and measured positions (N, n) from stamp `begin` to `end`, ns."""
        return _samples(self._states, self.joints, begin, end, "position")

    def torque(self, term: str, begin: int, end: int) -> tuple[Array, Array]:
        """Stamps (N,) s since `begin` and efforts (N, n) Nm of one term."""
        return _samples(self._terms[term], self.joints, begin, end, "effort")

    def commands(self, begin: int, end: int) -> tuple[Array, Array]:
        """When the heartbeat of each command came (N,) ns, and how old the state behind it was then (N,) s."""
        rows = [row[:2] for row in self._heartbeats if begin <= row[1] < end]
        stamps, came = np.array(rows, dtype=np.int64).reshape(-1, 2).T
        return came, (came - stamps) / SECOND

    def tracked(self, begin: int, end: int) -> bool:
        """Whether every command for the states from `begin` to `end` was one that follows a trajectory."""
        return all(mode == "tracking" for stamp, _, mode in self._heartbeats if begin <= stamp < end)

    def _on_heartbeat(self, data: bytes) -> None:
        stamp, mode = decode_header(data)
        self._heartbeats.append((stamp, time.time_ns(), mode))

    def _on_mode(self, message: String) -> None:
        self.mode = message.data


def _recorder(messages: list[bytes]) -> Callable[[bytes], None]:
    return lambda data: messages.append(data)  # the executor does not take the bound method of a list


def _samples(messages: list[bytes], joints: tuple[str, ...], begin: int, end: int, field: str) -> tuple[Array, Array]:
    decoder, stamps, values = JointStateDecoder(), [], []
    for data in messages:
        decoder.decode(data)
        if begin <= decoder.stamp < end:
            stamps.append((decoder.stamp - begin) / SECOND)
            order = [decoder.names.index(name) for name in joints]
            values.append(getattr(decoder, field)[order])
    return np.array(stamps), np.array(values).reshape(-1, len(joints))
