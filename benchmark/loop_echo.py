"""Contestant of `loop.py` that computes nothing: it answers each joint state with the positions.

    python -m benchmark.loop_echo EXECUTOR FORM PRIORITY     stock | events, typed | raw, 0 or SCHED_FIFO priority

Ended by SIGINT it prints how many states it read, and how many it knows to have been lost under way.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import rclpy
from rclpy.event_handler import SubscriptionEventCallbacks
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from rnea_ros.nodes.executor import make_executor
from rnea_ros.nodes.realtime import become_real_time, freeze_garbage
from rnea_ros.nodes.state_input import NEWEST
from rnea_ros.nodes.transport import leave_out_shared_memory
from rnea_ros.nodes.wire import JointStateDecoder, encode_array


def main(executor_name: str, form: str, priority: int) -> None:
    leave_out_shared_memory()
    rclpy.init()
    node = rclpy.create_node("echo")
    publisher = node.create_publisher(Float64MultiArray, "effort_controller/commands", 10)
    count = {"read": 0, "lost_under_way": 0}  # a negative first position is a knock at the door and does not count
    decoder = JointStateDecoder()

    def raw(data: bytes) -> None:
        decoder.decode(data)
        publisher.publish(encode_array(decoder.position))
        count["read"] += bool(decoder.position[0] >= 0.0)

    def typed(message: JointState) -> None:
        publisher.publish(Float64MultiArray(data=message.position))
        count["read"] += bool(message.position[0] >= 0.0)

    def lost(event: Any) -> None:
        count["lost_under_way"] += event.total_count_change

    # The typed echo is what people write; the raw one asks for states as the controller does.
    node.create_subscription(
        JointState, "joint_states", raw if form == "raw" else typed, NEWEST if form == "raw" else 10, raw=form == "raw",
        event_callbacks=SubscriptionEventCallbacks(message_lost=lost),
    )  # fmt: skip
    executor = make_executor() if executor_name == "events" else SingleThreadedExecutor()
    executor.add_node(node)
    freeze_garbage()
    refusals = become_real_time(priority) if priority else []
    if refusals:
        raise SystemExit("\n".join(refusals))
    try:
        while rclpy.ok():
            executor.spin_once(timeout_sec=1.0)
    except (KeyboardInterrupt, ExternalShutdownException):
        print(json.dumps(count), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
