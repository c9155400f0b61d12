"""The node `rnea_watchdog`: ROS around `control.watchdog.Watchdog`, which decides everything.

    in   rnea_controller/heartbeat   std_msgs/Header              the controller's mode, with every command
    in   joint_states                sensor_msgs/JointState       left with the middleware until it takes the arm over
    in   effort_controller/commands  std_msgs/Float64MultiArray   likewise: the last command, from which it goes on
    in   rnea_controller/payload     geometry_msgs/InertiaStamped what the controller is told that the tip carries
    in   robot_description           std_msgs/String              latched; used where the parameters name none
    out  effort_controller/commands  std_msgs/Float64MultiArray   only while it carries the arm
    out  ~/status                    sensor_msgs/JointState       latched; frame_id: its status; effort: its last one;
                                                                  position: where the arm was then
    out  /diagnostics                diagnostic_msgs/DiagnosticArray
    srv  ~/release                   std_srvs/Trigger             let go of the arm; an interrupted process then ends

SIGTERM lets go of the arm and ends. SIGINT ends only a watchdog that nobody needs.
"""

from __future__ import annotations

import signal
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import rclpy
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import InertiaStamped
from numpy.typing import NDArray
from rclpy.clock import Clock, ClockType
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header, String
from std_srvs.srv import Trigger

from rnea_ros.control.errors import ParameterError, Refusal
from rnea_ros.control.handover import Status
from rnea_ros.control.parameters import BY_NAME
from rnea_ros.control.settings import require_gravity_source
from rnea_ros.control.watchdog import TICK, Recent, StateMessage, Watchdog
from rnea_ros.control.watchdog_parameters import WATCHDOG_PARAMETERS
from rnea_ros.model.errors import ModelError
from rnea_ros.nodes.declaration import declare
from rnea_ros.nodes.description import described_robot
from rnea_ros.nodes.executor import make_executor
from rnea_ros.nodes.messages import SECOND, diagnostics, internal_error, log, payload
from rnea_ros.nodes.realtime import become_real_time, freeze_garbage
from rnea_ros.nodes.transport import LATCHED, NEWEST, RELIABLE, leave_out_shared_memory
from rnea_ros.nodes.wire import (
    JointStateDecoder,
    JointStateEncoder,
    WireError,
    decode_array,
    decode_header,
    encode_array,
)

Array = NDArray[np.float64]

KEPT = QoSProfile(depth=8, reliability=ReliabilityPolicy.BEST_EFFORT)  # other hardware may publish there too


class WatchdogNode(Node):
    """See the module. Raises ParameterError or ModelError for parameters that cannot be used."""

    def __init__(self, **node_arguments: Any) -> None:
        super().__init__("rnea_watchdog", automatically_declare_parameters_from_overrides=True, **node_arguments)
        self._values = declare(self, WATCHDOG_PARAMETERS, tolerated=BY_NAME.keys())
        require_gravity_source(self._values)
        self.core: Watchdog | None = None
        self._simulated_time = bool(self.get_parameter("use_sim_time").value)
        self._now, self._wall = time.monotonic_ns, time.time_ns
        if self._simulated_time:
            self._now = self._wall = self._ros_now
        self._states: Any = None  # subscriptions that are read when needed
        self._last_command: Any = None
        self._decoder = JointStateDecoder(lambda data: deserialize_message(data, JointState))
        self._said = ""
        self._commands = self.create_publisher(Float64MultiArray, "effort_controller/commands", RELIABLE)
        self._status = self.create_publisher(JointState, "~/status", LATCHED)
        self._diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", QoSProfile(depth=10))
        if self._values["robot_description"] or self._values["robot_description_file"]:
            self._start("")
        else:
            self.get_logger().info("no robot description as parameter: waits for the topic robot_description")
            self.create_subscription(String, "robot_description", self._on_description, LATCHED)

    @property
    def subscriptions(self) -> Iterator[Any]:
        """What the executor serves: not what is read when needed, which costs half of all watching otherwise."""
        unserved = (getattr(self, "_states", None), getattr(self, "_last_command", None))
        return (item for item in super().subscriptions if item not in unserved)

    # The hot path

    def _on_heartbeat(self, data: bytes) -> None:
        assert self.core is not None
        try:
            stamp, says = decode_header(data, lambda raw: deserialize_message(raw, Header))
        except WireError:
            return
        self._send(self.core.on_heartbeat(stamp, says, self._now()))

    def _on_tick(self) -> None:
        core = self.core
        assert core is not None
        if core.status is not Status.ACTIVE:
            self._send(core.tick(self._now()))

    def _on_active_tick(self) -> None:
        """While it carries the arm, once a period: a command for every new state."""
        core = self.core
        assert core is not None
        command = None
        for message in self._new_states():
            command = core.on_state(message)
        blind = core.tick(self._now())
        self._send(command if blind is None else blind)

    def _send(self, command: Array | None) -> None:
        """The command first, then what is to be said."""
        core = self.core
        assert core is not None
        if command is not None:
            self._commands.publish(encode_array(command))
        if core.announce:
            self._publish_status()
            self._pace(core.status is Status.ACTIVE)
        if core.messages:
            self._log()

    def _pace(self, active: bool) -> None:
        if active is self._active_timer.is_canceled():
            (self._active_timer.reset if active else self._active_timer.cancel)()

    # What was seen

    def _new_states(self) -> Iterable[StateMessage]:
        """What came since the last look, oldest first. Each is overwritten when the next is asked for."""
        wall, now = self._wall(), self._now()
        decoder = self._decoder
        while (taken := self._states.handle.take_message(JointState, True)) is not None:
            data, info = taken
            try:
                decoder.decode(data)
            except WireError:
                continue
            arrival = wall if self._simulated_time else (info["received_timestamp"] or wall)
            yield StateMessage(
                decoder.names,
                decoder.position,
                decoder.velocity,
                decoder.effort,
                decoder.stamp,
                arrival,
                now - max(wall - arrival, 0),
            )

    def _recent_command(self) -> Array | None:
        taken = self._last_command.handle.take_message(Float64MultiArray, True)
        if taken is None:
            return None
        try:
            return decode_array(taken[0], lambda raw: deserialize_message(raw, Float64MultiArray))
        except WireError:
            return None

    # Start

    def _on_description(self, message: String) -> None:
        if self.core is None:
            self._start(message.data)

    def _start(self, description: str) -> None:
        """description: the one of the topic, read where the parameters name none."""
        values = self._values
        robot = described_robot(values, description)
        self.core = core = Watchdog(robot, values, Recent(self._new_states, self._recent_command))
        self._encoders = {status: JointStateEncoder(robot.joint_names, status.value) for status in Status}
        subscribe = self.create_subscription
        self._states = subscribe(JointState, "joint_states", _unserved, KEPT, raw=True)
        self._last_command = subscribe(Float64MultiArray, "effort_controller/commands", _unserved, NEWEST, raw=True)
        subscribe(Header, "rnea_controller/heartbeat", self._on_heartbeat, QoSProfile(depth=10), raw=True)
        subscribe(InertiaStamped, "rnea_controller/payload", self._on_payload, RELIABLE)
        self.create_service(Trigger, "~/release", self._on_release)
        # A timer on the system's clock would stop where that clock is set back.
        clock = self.get_clock() if self._simulated_time else Clock(clock_type=ClockType.STEADY_TIME)
        self.create_timer(TICK / SECOND, self._on_tick, clock=clock)
        self._active_timer = self.create_timer(core.settings.period, self._on_active_tick, clock=clock)
        self._active_timer.cancel()
        self.create_timer(1.0 / values["diagnostics_rate"], self._publish_diagnostics, clock=clock)
        self.get_logger().info(
            f"{robot.name}: {', '.join(robot.joint_names)}; {robot.total_mass:.2f} kg; gravity_source "
            f"{values['gravity_source']}; detection time {core.detection * 1e-6:g} ms; braking damping "
            f"[{', '.join(f'{value:.3g}' for value in core.damping)}] Nms/rad + {core.braking_rate:.3g}/s × inertia"
        )
        freeze_garbage()
        if values["realtime_priority"]:
            for line in become_real_time(values["realtime_priority"]):
                self.get_logger().warning(line)
        self._send(None)

    # Requests

    def _on_payload(self, message: InertiaStamped) -> None:
        assert self.core is not None
        try:
            self.core.on_payload(*payload(message))
        except (Refusal, ModelError) as error:
            self.get_logger().warning(str(error))

    def _on_release(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        assert self.core is not None
        response.success = self.core.status is Status.ACTIVE
        response.message = "released" if response.success else f"{self.core.status.value}: it does not carry the arm"
        self._stream(self.core.release(self._now()))
        return response

    def survive(self, error: Exception) -> None:
        """A mistake in our own program is one line; the next state or tick is another chance."""
        self.get_logger().error(internal_error(error), throttle_duration_sec=1.0)

    def interrupt(self) -> None:
        """SIGINT"""
        if self.core is not None:
            self.core.interrupt()
            self._log()

    def end(self) -> None:
        """SIGTERM"""
        if self.core is not None:
            self._stream(self.core.end(self._now()))
            self._status.wait_for_all_acked(Duration(seconds=1.0))
            self._commands.wait_for_all_acked(Duration(seconds=1.0))

    @property
    def finished(self) -> bool:
        return self.core is not None and self.core.finished

    def _stream(self, commands: list[Array]) -> None:
        """The last commands of a turn, one period apart; nothing else is due meanwhile."""
        assert self.core is not None
        for command in commands:
            self._commands.publish(encode_array(command))
            time.sleep(self.core.settings.period)
        self._send(None)

    # What is told

    def _publish_status(self) -> None:
        core = self.core
        assert core is not None
        core.announce = False
        command = core.gate.previous if core.status is Status.ACTIVE else core.turn_command
        known = () if command is None else command
        position = core.reader.position if command is not None else ()
        self._status.publish(self._encoders[core.status].encode(self._wall(), position, (), known))

    def _publish_diagnostics(self) -> None:
        core = self.core
        assert core is not None
        level, text = DiagnosticStatus.OK, core.status.value
        if core.status is Status.ACTIVE:
            level, text = (
                (DiagnosticStatus.ERROR, "blind") if core.blind else (DiagnosticStatus.WARN, "carries the arm")
            )
        values = {
            "status": core.status.value,
            "take-overs": str(core.take_overs),
            "last detection [ms]": f"{core.detected_after * 1e3:.1f}",
            "last mode of the controller": core.last_mode,
            "gravity_source": core.settings["gravity_source"],
        }
        values.update({f"passed over: {reason}": str(count) for reason, count in core.passed_over.items()})
        name = f"{self.get_fully_qualified_name()}: watchdog"
        self._diagnostics.publish(diagnostics(name, level, text, core.robot.name, values, self._wall()))

    def _log(self) -> None:
        core = self.core
        assert core is not None
        lines, core.messages = core.messages, []
        log(self.get_logger(), lines)

    def _ros_now(self) -> int:
        return int(self.get_clock().now().nanoseconds)


def _unserved(_: bytes) -> None:
    """Stands where a subscription wants a callback."""


def main(arguments: list[str] | None = None) -> int:
    """Serves until it is finished. Signals are handled between two events; the tick makes sure that there are some."""
    leave_out_shared_memory()
    rclpy.init(args=arguments, signal_handler_options=SignalHandlerOptions.NO)
    asked: deque[int] = deque()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _frame: asked.append(received))
    try:
        node = WatchdogNode()
        executor = make_executor(node.context)
        executor.add_node(node)
        while node.context.ok() and not node.finished:
            try:
                executor.spin_once(timeout_sec=0.1)
            except Exception as error:  # whatever it is, the arm may be ours to carry
                if node.core is None:
                    raise
                node.survive(error)
            if asked:
                if asked.popleft() == signal.SIGTERM or node.core is None:
                    break
                node.interrupt()
        node.end()
        executor.shutdown()
        node.destroy_node()
    except (ParameterError, ModelError) as error:
        print(f"rnea_watchdog: {error}", file=sys.stderr)
        return 1
    finally:
        rclpy.try_shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
