"""Which executor runs a node, and until when."""

from __future__ import annotations

from rclpy.context import Context
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node


def make_executor(context: Context | None = None) -> Executor:
    """The EventsExecutor where this ROS 2 has one (Jazzy 7.1.4 and later), for it halves the cost of a message; else the stock one."""
    try:
        from rclpy.experimental.events_executor import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor(context=context)
    return EventsExecutor(context=context)


def spin(node: Node) -> None:
    """Serve the node until its context shuts down or a signal asks for the end; what a callback raises is passed on."""
    executor = make_executor(node.context)
    executor.add_node(node)
    try:
        while node.context.ok():
            executor.spin_once(timeout_sec=1.0)  # spin() of Kilted's EventsExecutor turns without serving anything
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        executor.shutdown()
