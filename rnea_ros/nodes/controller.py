"""The lifecycle node `rnea_controller`: ROS around `control.controller.Controller`, which decides everything.

The loop is triggered by the joint state: state in, command out, in one thread; everything else is published after the
command, at most one message a cycle. A timer sees what does not arrive.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import InertiaStamped, WrenchStamped
from rcl_interfaces.msg import SetParametersResult
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.parameter import Parameter
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header, String
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_ros.control.controller import Command, Controller
from rnea_ros.control.errors import ParameterError, Refusal
from rnea_ros.control.handover import GOODBYE, LEFT
from rnea_ros.control.parameters import BY_NAME, PARAMETERS
from rnea_ros.control.settings import coerced
from rnea_ros.control.supervisor import Event, Mode
from rnea_ros.control.trajectory import Point, TrajectoryRequest
from rnea_ros.model.robot import RobotModel
from rnea_ros.nodes.declaration import declare, is_of_ros
from rnea_ros.nodes.description import described_robot
from rnea_ros.nodes.executor import make_executor
from rnea_ros.nodes.messages import SECOND, internal_error, log, payload
from rnea_ros.nodes.realtime import become_real_time, freeze_garbage
from rnea_ros.nodes.reports import Reports, write_history
from rnea_ros.nodes.state_input import StateInput
from rnea_ros.nodes.transport import LATCHED, NEWEST, RELIABLE, leave_out_shared_memory
from rnea_ros.nodes.wire import JointStateDecoder, encode_array, encode_header

TICK = 0.005  # s between looks at what does not arrive
CHECKUP = 0.5  # s between looks at the graph, and attempts to start
HISTORY_AFTER = 0.5  # s that the record goes on after a fault
REPEAT = 5.0  # s between two refusals of a kind that repeats itself
STREAMS = ("reference", "external_wrench")
MOST_SLIPS = 10  # internal errors before the process ends
WATCHDOG = "rnea_watchdog"


class ControllerNode(LifecycleNode):
    """See the module. Raises ParameterError for unknown parameters and values of a wrong type."""

    def __init__(self) -> None:
        super().__init__(
            "rnea_controller",
            allow_undeclared_parameters=True,  # a misspelt name reaches `_on_parameters`, which names the nearest
            automatically_declare_parameters_from_overrides=True,
        )
        self.failed_for_good = False  # this process cannot go on
        self._slips = 0
        self.core: Controller | None = None
        self._reports: Reports | None = None
        self._description = ""
        self._active = False
        self._mode = ""
        self._refused: dict[str, tuple[str, float]] = {}  # last line for each kind of request, and when
        self._fault_at = 0
        declare(self, PARAMETERS)
        self._now: Callable[[], int] = time.time_ns
        if self.get_parameter("use_sim_time").value:
            self._now = self._ros_now
        self._commands = self.create_publisher(Float64MultiArray, "effort_controller/commands", RELIABLE)
        self._heartbeat = self.create_publisher(Header, "~/heartbeat", RELIABLE)  # a goodbye has to arrive
        self._mode_publisher = self.create_publisher(String, "~/mode", LATCHED)
        self._publish_mode("idle")
        self.create_subscription(String, "robot_description", self._on_description, LATCHED)
        self._entities: list[Any] = []
        self.add_on_set_parameters_callback(self._on_parameters)
        self._checkup = self.create_timer(CHECKUP, self._check_up)
        self._tick_timer: Any = None

    # The hot path: one function in, one function out

    def _on_joint_state(self, state: JointStateDecoder) -> None:
        """A joint state: the command leaves before anything else is done."""
        arrival = self._now()
        core = self.core
        if core is None:
            return
        command = core.on_state(state.names, state.position, state.velocity, state.effort, state.stamp, arrival)
        if command is not None:
            self._send(command)
        self._after_cycle(arrival, command is not None)

    def _send(self, command: Command) -> None:
        """The command to the joints, and the heartbeat that belongs to it."""
        if self._dry_run:
            return
        if command.effort is not None:
            self._commands.publish(encode_array(command.effort))
        self._heartbeat.publish(encode_header(command.stamp, command.mode))

    def _leave(self, word: str) -> None:
        """The last heartbeat, for the watchdog."""
        if not self._dry_run:
            assert self.core is not None
            self._heartbeat.publish(encode_header(self.core.reader.stamp or 0, word))

    def _after_cycle(self, now: int, commanded: bool = True) -> None:
        core, reports = self.core, self._reports
        assert core is not None and reports is not None
        core.finish()
        if core.supervisor.text != self._mode:
            self._publish_mode(core.supervisor.text)
            if core.supervisor.mode is Mode.FAULT:
                self._fault_at = now
            elif core.supervisor.mode is Mode.IDLE and self._active:  # released: nobody has to carry the arm
                self._leave(LEFT)
        if core.messages:
            self._log(core.take_messages())
        if commanded:
            reports.count_command()
        reports.one(now)

    def _on_tick(self) -> None:
        if self.core is None:
            return
        now = self._now()
        command = self.core.tick(now)
        if command is not None:
            self._send(command)
        self._after_cycle(now, command is not None)
        if self._fault_at and now - self._fault_at > HISTORY_AFTER * SECOND:
            self._fault_at = 0
            write_history(self.core, self.core.settings["history.directory"], self.get_logger())

    # Requests

    def _on_trajectory(self, message: JointTrajectory) -> None:
        points = [_point(point) for point in message.points]
        stamp = message.header.stamp.sec * SECOND + message.header.stamp.nanosec
        request = TrajectoryRequest(list(message.joint_names), points, stamp)
        self._granted("joint_trajectory", lambda core: core.on_trajectory(request))

    def _on_reference(self, message: JointTrajectoryPoint) -> None:
        now = self._now()
        self._granted("reference", lambda core: core.on_reference(_point(message), now))

    def _on_wrench(self, message: WrenchStamped) -> None:
        force, torque, now = message.wrench.force, message.wrench.torque, self._now()
        wrench = np.array([force.x, force.y, force.z, torque.x, torque.y, torque.z])
        self._granted("external_wrench", lambda core: core.on_wrench(wrench, message.header.frame_id, now))

    def _on_payload(self, message: InertiaStamped) -> None:
        self._granted("payload", lambda core: core.on_payload(*payload(message)))

    def _on_watchdog(self, message: JointState) -> None:
        core = self.core
        if core is None:
            return
        stamp = message.header.stamp.sec * SECOND + message.header.stamp.nanosec
        by_name = dict(zip(message.name, message.effort, strict=False))
        last = [by_name.get(name, np.nan) for name in core.robot.joint_names]
        command = np.array(last) if np.isfinite(last).all() else None
        core.on_watchdog(message.header.frame_id, stamp, command, self._now())

    def _granted(self, what: str, ask: Callable[[Controller], str | None]) -> tuple[bool, str]:
        """Whether the controller does what it is asked for, and its line, which is logged."""
        core = self.core
        if core is None or not self._active:
            line = f"{what}: refused, the controller is not active"
        else:
            try:
                line = ask(core) or ""
                if line:
                    self.get_logger().info(line)
                return True, line
            except (Refusal, ParameterError) as error:
                line = str(error)
        self._log_refusal(what, line)
        return False, line

    def _serve(self, event: Event) -> Callable[[Any, Any], Any]:
        def answer(_request: Any, response: Any) -> Any:
            response.success, response.message = self._ask(event)
            return response

        return answer

    def _serve_float(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        response.success, response.message = self._ask(Event.FLOAT if request.data else Event.HOLD)
        return response

    def _ask(self, event: Event) -> tuple[bool, str]:
        """Float, hold, stop or reset. After a stop into silence, float and hold begin anew."""

        def ask(core: Controller) -> str:
            if core.supervisor.mode is Mode.IDLE and event in (Event.FLOAT, Event.HOLD):
                self._send(core.activate(self._now()))
            return core.request(event)

        granted = self._granted(event.value, ask)
        if self.core is not None and self._reports is not None:
            self._after_cycle(self._now())
        return granted

    # Lifecycle

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        try:
            values = self._values()
            robot = described_robot(values, self._description)
            self.core = Controller(robot, values)
        except ValueError as error:
            self.get_logger().error(str(error))
            return TransitionCallbackReturn.FAILURE
        self.core.warm_up()
        self._dry_run = bool(values["dry_run"])
        states = StateInput(self, self._on_joint_state)
        self._reports = Reports(self, self.core, states, partial(self._several_publish, "joint_states"))
        self._connect(states)
        self._tick_timer = self.create_timer(TICK, self._on_tick)
        self._introduce(robot)
        self._log(self.core.take_messages())
        if values["realtime_priority"]:
            for line in become_real_time(values["realtime_priority"]):
                self.get_logger().warning(line)
        freeze_garbage()  # before the activation: it takes long enough for states to grow old and a watchdog to step in
        return TransitionCallbackReturn.SUCCESS

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        core = self.core
        assert core is not None
        others = self._other_commanders()
        try:
            if others:
                raise Refusal(f"activate: {others} already publishes on effort_controller/commands; stop it first")
            command = core.activate(self._now())
        except Refusal as refusal:
            self._log_refusal("activate", str(refusal))
            return TransitionCallbackReturn.FAILURE
        self._send(command)  # before the activation completes: no moment without support
        self._active = True
        self._after_cycle(self._now())
        self.get_logger().info(f"active: {core.supervisor.text}")
        return super().on_activate(state)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        core = self.core
        assert core is not None
        self._active = False
        for command in core.deactivate(self._now()):
            self._send(command)
            time.sleep(core.settings.period)  # the ramp runs in time; nothing else is due any more
        if not self._dry_run:
            self._leave(LEFT if core.arm.carries_all else GOODBYE)
            self._heartbeat.wait_for_all_acked(Duration(seconds=1.0))  # this process may end next
        if not core.arm.carries_all and not self._dry_run and not core.turn.alive(self._now()):
            self.get_logger().error(
                "UNSUPPORTED: no watchdog takes over, the joints keep the last torque for ever; apply brakes"
            )
        self._publish_mode("idle")
        return super().on_deactivate(state)

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        self._disconnect()
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        if self._active:
            self.on_deactivate(state)
        self._disconnect()
        return TransitionCallbackReturn.SUCCESS

    def say_goodbye(self) -> None:
        """The end of the process: what deactivation does."""
        if self._active:
            self.trigger_deactivate()

    def survive(self, error: Exception) -> None:
        """A mistake in our own program: one line, and the arm is braked and held. A run of them ends the process, so
        that the watchdog takes over."""
        self._slips += 1
        line = internal_error(error)
        self.get_logger().error(line)
        if self.core is not None:
            self.core.fault(line)
        self.failed_for_good = self._slips >= MOST_SLIPS

    def _connect(self, states: StateInput) -> None:
        subscribe = self.create_subscription
        self._entities = [
            (StateInput.close, states),
            (
                self.destroy_subscription,
                subscribe(JointTrajectory, "~/joint_trajectory", self._on_trajectory, RELIABLE),
            ),
            (self.destroy_subscription, subscribe(JointTrajectoryPoint, "~/reference", self._on_reference, NEWEST)),
            (self.destroy_subscription, subscribe(WrenchStamped, "~/external_wrench", self._on_wrench, NEWEST)),
            (self.destroy_subscription, subscribe(InertiaStamped, "~/payload", self._on_payload, RELIABLE)),
            (self.destroy_subscription, subscribe(JointState, "rnea_watchdog/status", self._on_watchdog, LATCHED)),
            (self.destroy_service, self.create_service(SetBool, "~/gravity_compensation", self._serve_float)),
            (self.destroy_service, self.create_service(Trigger, "~/hold", self._serve(Event.HOLD))),
            (self.destroy_service, self.create_service(Trigger, "~/stop", self._serve(Event.STOP))),
            (self.destroy_service, self.create_service(Trigger, "~/reset", self._serve(Event.RESET))),
        ]

    def _disconnect(self) -> None:
        if self._tick_timer is not None:
            self.destroy_timer(self._tick_timer)
            self._tick_timer = None
        for destroy, entity in self._entities:
            destroy(entity)
        self._entities = []
        if self._reports is not None:
            self._reports.close()
        self._reports = None
        self.core = None

    # Start

    def _check_up(self) -> None:
        """The graph, and the start without a lifecycle manager."""
        core = self.core
        if core is not None:
            for topic in ("joint_trajectory", "reference"):
                core.on_publishers(topic, self._several_publish(f"~/{topic}"))
        if self._active and (others := self._other_commanders()):
            line = f"{others} publishes on effort_controller/commands too: the arm follows both; stop it"
            self._log_refusal("commands", line)
        if not self.get_parameter("autostart").value or self._active:
            return
        if core is None:
            if self._has_description():
                self.trigger_configure()
                self.failed_for_good = self.core is None
        elif core.reader.stamp is None and core.monitor.last_passed_over is None:
            topic = self.resolve_topic_name("joint_states")
            self.get_logger().info(f"waiting for joint states on {topic}", throttle_duration_sec=REPEAT)
        else:
            self.trigger_activate()

    def _has_description(self) -> bool:
        given = self.get_parameter("robot_description").value or self.get_parameter("robot_description_file").value
        if not given and not self._description:
            self._log_refusal("description", "no robot description yet on robot_description, and none as parameter")
            return False
        return True

    def _on_description(self, message: String) -> None:
        self._description = message.data

    def _introduce(self, robot: RobotModel) -> None:
        """Who carries gravity, and what is controlled: said at every start."""
        core = self.core
        assert core is not None
        gravity = ", ".join(f"{x:g}" for x in core.settings.gravity)
        self.get_logger().info(
            f"{robot.name}: {', '.join(robot.joint_names)}; {robot.total_mass:.2f} kg; gravity_source "
            f"{core.settings['gravity_source']}, gravity ({gravity}) m/s²; law {core.settings['law']}, latency "
            f"{core.settings.latency * 1e3:g} ms" + ("; DRY RUN" if self._dry_run else "")
        )

    # Parameters

    def _values(self) -> dict[str, Any]:
        """Every parameter of ours by name, in its own type: ROS has none for an empty array."""
        return coerced({name: _plain(self.get_parameter(name).value) for name in BY_NAME})

    def _on_parameters(self, parameters: list[Parameter]) -> SetParametersResult:
        changes = {item.name: _plain(item.value) for item in parameters if not is_of_ros(item.name)}
        try:
            if self.core is None:
                coerced(changes)
            elif changes:
                self.core.set_parameters(changes)
                self._log(self.core.take_messages())
        except ParameterError as error:
            return SetParametersResult(successful=False, reason=str(error))
        return SetParametersResult(successful=True)

    # Small things

    def _ros_now(self) -> int:
        return int(self.get_clock().now().nanoseconds)

    def _publish_mode(self, text: str) -> None:
        self._mode = text
        self._mode_publisher.publish(String(data=text))

    def _who_publishes(self, topic: str) -> list[str]:
        return [info.node_name for info in self.get_publishers_info_by_topic(self.resolve_topic_name(topic))]

    def _other_commanders(self) -> str:
        """Names of the nodes that command the joints beside us and the watchdog."""
        if self._dry_run:
            return ""
        ours = (self.get_name(), WATCHDOG)
        names = self._several_publish("effort_controller/commands")
        return ", ".join(name for name in names if name not in ours)

    def _several_publish(self, topic: str) -> list[str]:
        """Who they are, where more than one does. The names alone take long enough to delay a command."""
        return self._who_publishes(topic) if self.count_publishers(self.resolve_topic_name(topic)) > 1 else []

    def _log(self, messages: list[tuple[str, str]]) -> None:
        log(self.get_logger(), messages)

    def _log_refusal(self, what: str, line: str) -> None:
        """Each request is answered with its line; what is said again and again is said every few seconds."""
        now = time.monotonic()
        text, since = self._refused.get(what, ("", -REPEAT))
        if now - since < REPEAT and (text == line or what in STREAMS):
            return
        self._refused[what] = (line, now)
        self.get_logger().warning(line)


def _point(message: JointTrajectoryPoint) -> Point:
    time_from_start = message.time_from_start.sec + message.time_from_start.nanosec * 1e-9
    return Point(time_from_start, message.positions, message.velocities, message.accelerations)


def _plain(value: Any) -> Any:
    """A parameter's value without array types; None (declared without a value) is an empty array."""
    if value is None:
        return []
    if isinstance(value, (str, bool, int, float)):
        return value
    return list(value)


def main() -> None:
    leave_out_shared_memory()
    rclpy.init(args=sys.argv, signal_handler_options=SignalHandlerOptions.NO)
    asked: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda received, _frame: asked.append(received))
    try:
        code = _run(ControllerNode(), asked)
    except ParameterError as error:
        print(f"rnea_controller: {error}", file=sys.stderr)
        code = 1
    finally:
        rclpy.try_shutdown()
    sys.exit(code)


def _run(node: ControllerNode, asked: list[int]) -> int:
    """Serve until a signal is `asked`, or the node cannot go on. Returns the exit code."""
    executor = make_executor(node.context)
    executor.add_node(node)
    while node.context.ok() and not asked and not node.failed_for_good:
        try:
            executor.spin_once(timeout_sec=0.1)
        except Exception as error:
            node.survive(error)
    node.say_goodbye()
    executor.shutdown()
    node.destroy_node()
    return 1 if node.failed_for_good else 0


if __name__ == "__main__":
    main()
