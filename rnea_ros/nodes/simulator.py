"""`rnea_simulator`: a MuJoCo arm on the topics of joint_state_broadcaster and forward_command_controller.

| | name (relative) | type | meaning |
|---|---|---|---|
| out | `joint_states` | sensor_msgs/JointState | reliable, transient local, depth 10; stamped at the source |
| in | `effort_controller/commands` | std_msgs/Float64MultiArray | best effort, volatile, depth 1 |
| in | `~/push` | geometry_msgs/WrenchStamped | at origin and in axes of the link header.frame_id (empty: the tip) |
| in | `~/payload` | std_msgs/Float64 | kg hung on the tip that nobody was told of; 0 drops it |
| service | `~/activate` | std_srvs/Trigger | switch the command controller on again after a wrong command |
"""

from __future__ import annotations

import sys
from typing import Any

import rclpy
from geometry_msgs.msg import WrenchStamped
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64, Float64MultiArray
from std_srvs.srv import Trigger

from rnea_ros.control.errors import ParameterError
from rnea_ros.model.errors import ModelError
from rnea_ros.nodes.declaration import declare
from rnea_ros.nodes.executor import make_executor
from rnea_ros.nodes.realtime import freeze_garbage
from rnea_ros.nodes.simulator_parameters import PARAMETERS
from rnea_ros.nodes.transport import leave_out_shared_memory
from rnea_ros.nodes.wire import JointStateEncoder, WireError, decode_array
from rnea_ros.share import description_source
from rnea_ros.simulation.arm import Imperfections, SimulatedArm
from rnea_ros.simulation.errors import SimulationError
from rnea_ros.simulation.physics import Physics

PAUSE = 20_000_000  # ns: a loop that is later than this was paused
STATE_QOS = QoSProfile(depth=10, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
COMMAND_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT, durability=DurabilityPolicy.VOLATILE)
INPUT_QOS = QoSProfile(depth=10)


class SimulatorNode(Node):
    """The arm's topics. `step(stamp)` advances the physics by one period and publishes the state."""

    def __init__(self, **node_arguments: Any) -> None:
        super().__init__("rnea_simulator", automatically_declare_parameters_from_overrides=True, **node_arguments)
        values = declare(self, PARAMETERS)
        self.period = 1.0 / values["rate"]
        self.arm = _arm(values)
        self._push_timeout = int(values["push_timeout"] * 1e9)
        self._push_end: int | None = None
        self._reported = ""
        self._encode = JointStateEncoder(self.arm.joint_names).encode
        commands = "effort_controller/commands"
        self._publisher = self.create_publisher(JointState, "joint_states", STATE_QOS)
        self.create_subscription(Float64MultiArray, commands, self._on_command, COMMAND_QOS, raw=True)
        self.create_subscription(WrenchStamped, "~/push", self._on_push, INPUT_QOS)
        self.create_subscription(Float64, "~/payload", self._on_payload, INPUT_QOS)
        self.create_service(Trigger, "~/activate", self._on_activate)
        self.get_logger().info(
            f"simulating {', '.join(self.arm.joint_names)} at {values['rate']:g} Hz; still until the first command on "
            f"{self.resolve_topic_name(commands)}"
        )

    def step(self, stamp: int) -> None:
        """One period of physics, then the state at `stamp` (ns)."""
        if self._push_end is not None and stamp > self._push_end:
            self.arm.push(None)
            self._push_end = None
        self.arm.step()
        measured = self.arm.state()
        self._publisher.publish(self._encode(stamp, measured.position, measured.velocity, measured.effort))
        if self.arm.command.reason != self._reported:
            self._reported = self.arm.command.reason
            if self._reported:
                self._report_deactivation()

    def _report_deactivation(self) -> None:
        self.get_logger().error(
            f"effort_controller deactivated: {self._reported}; it holds the last torque until "
            f"{self.resolve_service_name('~/activate')} is called"
        )

    def _on_command(self, data: bytes) -> None:
        try:
            effort = decode_array(data, lambda data: deserialize_message(data, Float64MultiArray))
        except WireError as error:
            self.get_logger().warning(f"command passed over: {error}", throttle_duration_sec=2.0)
            return
        if not self.arm.moving:
            self.get_logger().info("first command: the arm is free")
        self.arm.receive(effort)

    def _on_push(self, message: WrenchStamped) -> None:
        force, torque = message.wrench.force, message.wrench.torque
        try:
            self.arm.push((force.x, force.y, force.z, torque.x, torque.y, torque.z), message.header.frame_id or None)
        except SimulationError as error:
            self.get_logger().warning(str(error))
            return
        self._push_end = self.get_clock().now().nanoseconds + self._push_timeout

    def _on_payload(self, message: Float64) -> None:
        try:
            self.arm.set_payload(message.data)
        except SimulationError as error:
            self.get_logger().warning(str(error))

    def _on_activate(self, _: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        self.arm.command.activate()
        response.success = True
        return response


def _arm(values: dict[str, Any]) -> SimulatedArm:
    period = 1.0 / values["rate"]
    if len(values["gravity"]) != 3:
        raise ParameterError(f"parameter 'gravity' has {len(values['gravity'])} values, expected 3")
    arm = SimulatedArm(
        description_source(values["robot_description"], values["robot_description_file"]),
        values["joints"] or None,
        initial_positions=values["initial_positions"] or None,
        tip=values["tip"] or None,
        physics=Physics(
            timestep=period,
            gravity=values["gravity"],
            mass_scale=values["mass_scale"],
            viscous_friction=values["viscous_friction"],
            coulomb_friction=values["coulomb_friction"],
            armature=values["armature"],
        ),
        imperfections=Imperfections(
            encoder_noise=values["encoder_noise"],
            velocity_noise=values["velocity_noise"],
            delay=round(values["delay"] / period),
            loss=values["loss"],
            seed=int(values["seed"]),
        ),
        adds_gravity=values["adds_gravity"],
    )
    if values["payload"]:
        arm.set_payload(values["payload"])
    return arm


def run(node: SimulatorNode) -> None:
    """Step in real time on an absolute schedule, serving messages in between, until shutdown.

    Stamps follow the schedule, which is the physics' own time, and not the jitter of this loop. A short delay is caught
    up with the last torque, as a real arm moves on; after a pause the schedule starts anew: an arm whose computer stood
    still does not rush through the time it missed.
    """
    executor = make_executor(node.context)
    executor.add_node(node)
    freeze_garbage()
    period = round(node.period * 1e9)
    wall = node.get_clock()
    due = wall.now().nanoseconds
    try:
        while node.context.ok():
            due += period
            while (left := due - wall.now().nanoseconds) > 0:
                executor.spin_once(timeout_sec=left * 1e-9)
            if -left > period:
                executor.spin_once(timeout_sec=0.0)  # late, but not deaf
            if -left > PAUSE:
                due = wall.now().nanoseconds
            node.step(due)
    finally:
        executor.shutdown()


def main(arguments: list[str] | None = None) -> int:
    leave_out_shared_memory()
    rclpy.init(args=arguments)
    try:
        run(SimulatorNode())
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    except (ParameterError, ModelError, SimulationError) as error:
        print(f"rnea_simulator: {error}", file=sys.stderr)
        return 1
    finally:
        rclpy.try_shutdown()
    return 0


if __name__ == "__main__":
    sys.exit(main())
