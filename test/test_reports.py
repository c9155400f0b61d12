"""What the controller tells besides the command, in virtual time with publishers that only count."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs ROS 2")
pytest.importorskip("mujoco", reason="needs MuJoCo")

from diagnostic_msgs.msg import DiagnosticArray
from virtual_arm import MILLISECOND, VirtualArm

from rnea_ros.control.terms import TERMS
from rnea_ros.nodes.reports import Reports


class Node:
    """The part of a node that publishes; `sent` has (topic, message) in order."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, Any]] = []

    def create_publisher(self, _kind: Any, topic: str, _qos: Any) -> SimpleNamespace:
        return SimpleNamespace(publish=lambda message: self.sent.append((topic, message)))

    def get_fully_qualified_name(self) -> str:
        return "/rnea_controller"


def run(seconds: float, lost: int | None = 3, **parameters: Any) -> Node:
    """A holding arm's reports; fails where a cycle publishes more than one message."""
    node, arm = Node(), VirtualArm(**parameters)
    states = SimpleNamespace(read=41, lost=lost, unreadable=2)
    reports = Reports(node, arm.controller, states, list)
    arm.activate()
    for cycle in range(round(seconds * 1000)):
        arm.step()
        reports.one(arm.now)
        assert len(node.sent) <= cycle + 1
    return node


def values(message: DiagnosticArray) -> dict[str, str]:
    return {item.key: item.value for item in message.status[0].values}


def test_terms_at_the_highest_rate_leave_room_for_diagnostics() -> None:
    topics = [topic for topic, _ in run(2.5, terms_rate=1000.0).sent]
    assert topics.count("/diagnostics") == 3
    for topic in (*(f"~/torque/{name}" for name in TERMS), "~/tracking"):
        assert topics.count(topic) > 150


def test_diagnostics_tell_what_became_of_joint_states() -> None:
    told = values(next(message for topic, message in run(0.1).sent if topic == "/diagnostics"))
    assert told["joint states read"] == "41"
    assert told["joint states lost in transport"] == "3"
    assert told["joint states unreadable"] == "2"
    told = values(next(message for topic, message in run(0.1, lost=None).sent if topic == "/diagnostics"))
    assert told["joint states lost in transport"] == "not told by the middleware"


def test_a_cycle_that_is_not_finished_is_finished_by_the_next() -> None:
    """What follows the command may be late, and is never left out."""
    prompt, late = VirtualArm(history__seconds=1.0), VirtualArm(history__seconds=1.0)
    for arm in (prompt, late):
        arm.activate()
    for _ in range(60):
        q, qd = prompt.measured()
        for arm in (prompt, late):
            arm.now += MILLISECOND
            arm.controller.on_state(arm.names, q, qd, [], arm.now, arm.now)
        prompt.controller.finish()
    late.controller.finish()
    assert len(prompt.controller.history.snapshot()) > 60
    assert np.array_equal(prompt.controller.history.snapshot(), late.controller.history.snapshot())
    assert np.array_equal(prompt.controller.observer.external, late.controller.observer.external)
    assert late.controller.observer.external.any()
