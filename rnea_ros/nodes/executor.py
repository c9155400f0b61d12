"""Which executor runs a node."""

from __future__ import annotations

from rclpy.context import Context
from rclpy.executors import Executor, SingleThreadedExecutor


def make_executor(context: Context | None = None) -> Executor:
    """The EventsExecutor where this ROS 2 has one (rclpy 7.1.4 of Jazzy and later), else the stock executor.

    With serialised messages it takes a third of the stock executor's processor time per message.
    Turn it with `spin_once` in a loop: `spin` of Kilted's EventsExecutor burns a core and serves nothing.
    """
    try:
        from rclpy.experimental.events_executor import EventsExecutor
    except ImportError:
        return SingleThreadedExecutor(context=context)
    return EventsExecutor(context=context)
