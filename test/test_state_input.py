"""What the subscription of joint states counts, and what it does where the middleware cannot tell of losses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")

from rnea_ros.nodes import state_input
from rnea_ros.nodes.state_input import StateInput
from rnea_ros.nodes.wire import JointStateDecoder, JointStateEncoder

ENCODE = JointStateEncoder(["a", "b"]).encode


class StandIn:
    """The part of a node that a subscription is made with."""

    def __init__(self, tells_losses: bool = True) -> None:
        self.tells_losses = tells_losses
        self.made: list[dict[str, Any]] = []
        self.ended: list[Any] = []

    def create_subscription(self, kind: Any, topic: str, callback: Any, qos: Any, **more: Any) -> dict[str, Any]:
        if "event_callbacks" in more and not self.tells_losses:
            raise state_input.UnsupportedEventTypeError("not by this middleware")
        self.made.append({"topic": topic, "callback": callback, "qos": qos, **more})
        return self.made[-1]

    def destroy_subscription(self, subscription: Any) -> None:
        self.ended.append(subscription)


def test_states_that_can_be_read_are_handed_on_and_others_counted() -> None:
    node, taken = StandIn(), []
    states = StateInput(node, lambda state: taken.append((state.stamp, state.names, list(state.position))))
    (made,) = node.made
    assert made["raw"] and made["qos"].depth == 1
    made["callback"](ENCODE(5, [1.0, 2.0]))
    made["callback"](b"\x00\x01\x00\x00no joint state")
    made["callback"](b"")
    made["callback"](ENCODE(6, [3.0, 4.0]))
    assert taken == [(5, ("a", "b"), [1.0, 2.0]), (6, ("a", "b"), [3.0, 4.0])]
    assert (states.read, states.unreadable, states.lost) == (2, 2, 0)


def test_losses_are_added_up() -> None:
    node = StandIn()
    states = StateInput(node, _ignore)
    lost = node.made[0]["event_callbacks"].message_lost
    for total, change in ((2, 2), (5, 3)):
        lost(SimpleNamespace(total_count=total, total_count_change=change))
    assert states.lost == 5


def test_a_middleware_that_does_not_tell_of_losses_still_brings_states() -> None:
    node = StandIn(tells_losses=False)
    states = StateInput(node, _ignore)
    (made,) = node.made
    made["callback"](ENCODE(1, [0.0, 0.0]))
    assert states.read == 1
    assert states.lost is None


def test_closing_ends_the_subscription() -> None:
    node = StandIn()
    StateInput(node, _ignore).close()
    assert node.ended == node.made


def _ignore(_state: JointStateDecoder) -> None: ...
