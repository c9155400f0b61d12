"""How joint states come in: serialised, the newest alone, and all that do not arrive counted by their cause."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rclpy.node import Node
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState

from rnea_ros.nodes.transport import NEWEST
from rnea_ros.nodes.wire import JointStateDecoder, WireError

try:
    from rclpy.event_handler import SubscriptionEventCallbacks, UnsupportedEventTypeError
except ImportError:  # Humble
    from rclpy.qos_event import SubscriptionEventCallbacks, UnsupportedEventTypeError


class StateInput:
    """The subscription of `joint_states`. Each message that can be read is handed to `take`, within the decoder that
    holds it until the next one.

    read        messages that were handed on
    unreadable  messages that are no joint states
    lost        messages that the middleware knows to have got lost under way; None where it cannot tell

    A state that was replaced by a newer one before it was read is in none of these.
    """

    def __init__(self, node: Node, take: Callable[[JointStateDecoder], None]) -> None:
        self.read = self.unreadable = 0
        self.lost: int | None = 0
        self._take = take
        self._decoder = JointStateDecoder(lambda data: deserialize_message(data, JointState))
        self._node = node
        events = SubscriptionEventCallbacks(message_lost=self._on_lost)
        try:
            self._subscription = self._subscribe(event_callbacks=events)
        except UnsupportedEventTypeError:
            self.lost = None
            self._subscription = self._subscribe()

    def close(self) -> None:
        self._node.destroy_subscription(self._subscription)

    def _subscribe(self, **more: Any) -> Any:
        return self._node.create_subscription(JointState, "joint_states", self._on_bytes, NEWEST, raw=True, **more)

    def _on_bytes(self, data: bytes) -> None:
        try:
            self._decoder.decode(data)
        except WireError:
            self.unreadable += 1
            return
        self.read += 1
        self._take(self._decoder)

    def _on_lost(self, event: Any) -> None:
        self.lost = (self.lost or 0) + event.total_count_change
