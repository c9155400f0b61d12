"""What the controller node tells besides the command: terms, tracking, diagnostics, the record of a fault.

Joint state messages are collected and published one a cycle, so that no command waits for more than one of them.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

from rnea_ros.control.controller import Controller
from rnea_ros.control.supervisor import Mode
from rnea_ros.control.terms import TERMS, command_terms
from rnea_ros.nodes.messages import SECOND, diagnostics
from rnea_ros.nodes.state_input import StateInput
from rnea_ros.nodes.transport import NEWEST
from rnea_ros.nodes.wire import JointStateEncoder


class Reports:
    """Publishers of one configured controller."""

    def __init__(
        self,
        node: LifecycleNode,
        core: Controller,
        states: StateInput,
        several_publishers: Callable[[], list[str]],
    ) -> None:
        self._node, self._core, self._states = node, core, states
        self._several_publishers = several_publishers
        self._encoder = JointStateEncoder(core.robot.joint_names)
        self._terms = {name: node.create_publisher(JointState, f"~/torque/{name}", NEWEST) for name in TERMS}
        self._tracking = node.create_publisher(JointState, "~/tracking", NEWEST)
        self._diagnostics = node.create_publisher(DiagnosticArray, "/diagnostics", QoSProfile(depth=10))
        self._outbox: deque[tuple[Any, bytes]] = deque()
        self._terms_due = 0
        self._diagnostics_due = 0
        self._cycles = 0
        self._counted_at = 0

    def close(self) -> None:
        for publisher in (*self._terms.values(), self._tracking, self._diagnostics):
            self._node.destroy_publisher(publisher)

    def count_command(self) -> None:
        self._cycles += 1

    def one(self, now: int) -> None:
        """Publish at most one message; collect the next ones where they are due. Diagnostics go first: terms at a high
        rate would leave them no room."""
        core = self._core
        rate = core.settings["terms_rate"]
        if not 0 <= self._diagnostics_due - now <= 10 * SECOND:
            self._diagnostics_due = now + round(SECOND / core.settings["diagnostics_rate"])
            self._publish_diagnostics(now)
        elif self._outbox:
            publisher, data = self._outbox.popleft()
            publisher.publish(data)
        elif rate > 0.0 and core.supervisor.mode is not Mode.IDLE and not 0 <= self._terms_due - now <= SECOND:
            self._terms_due = now + round(SECOND / rate)
            self._collect()

    def _collect(self) -> None:
        core = self._core
        stamp = core.reader.stamp or 0
        for name, torque in command_terms(core.drive).items():
            self._outbox.append((self._terms[name], self._encoder.encode(stamp, effort=torque)))
        error, external = core.drive.error, core.observer.external
        self._outbox.append((self._tracking, self._encoder.encode(stamp, error[0], error[1], external)))

    def _publish_diagnostics(self, now: int) -> None:
        core = self._core
        span = (now - self._counted_at) / SECOND
        cycle_rate = self._cycles / span if 0.0 < span < 20.0 else 0.0
        self._cycles, self._counted_at = 0, now
        level, summary = self._health()
        states = self._states
        values = {
            "mode": core.supervisor.text,
            "joint state rate [Hz]": f"{core.timekeeper.rate:.1f}",
            "command rate [Hz]": f"{cycle_rate:.1f}",
            "age of the state [ms]": f"{core.timekeeper.age * 1e3:.3f}",
            "jitter of the states [ms]": f"{core.timekeeper.jitter * 1e3:.3f}",
            "gravity_source": core.settings["gravity_source"],
            "velocity": "measured" if core.reader.velocity_measured else "filtered difference",
            "joint states read": str(states.read),
            "joint states lost in transport": "not told by the middleware" if states.lost is None else str(states.lost),
            "joint states unreadable": str(states.unreadable),
            "publishers of joint_states": ", ".join(self._several_publishers()) or "not more than one",
        }
        values.update({f"passed over: {reason}": str(count) for reason, count in core.monitor.passed_over.items()})
        values.update(
            {f"at its effort limit: {name}": f"{count} cycles" for name, count in core.monitor.clamped.items()}
        )
        values.update({f"at its rate limit: {name}": f"{count} cycles" for name, count in core.monitor.slowed.items()})
        name = f"{self._node.get_fully_qualified_name()}: control"
        self._diagnostics.publish(diagnostics(name, level, summary, core.robot.name, values, now))

    def _health(self) -> tuple[bytes, str]:
        core = self._core
        if core.supervisor.mode is Mode.FAULT:
            return DiagnosticStatus.ERROR, core.supervisor.text
        if core.waiting:
            return DiagnosticStatus.WARN, "the watchdog has the arm"
        if core.blind:
            return DiagnosticStatus.WARN, "blind: no joint states, gravity support alone"
        if core.monitor.warned_of:
            return DiagnosticStatus.WARN, f"lagging: {', '.join(sorted(core.monitor.warned_of))}"
        return DiagnosticStatus.OK, core.supervisor.text


def write_history(core: Controller, directory: str, logger: Any) -> None:
    """Write the record of the last seconds beside the loop; what fails is logged."""
    rows = core.history.snapshot()
    if not len(rows):
        return
    folder = Path(directory) if directory else _log_folder()
    path = folder / f"fault-{time.strftime('%Y%m%d-%H%M%S')}.npz"
    columns = np.array(core.history.columns(core.robot.joint_names))
    reason = core.supervisor.text

    def write() -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            np.savez(path, rows=rows, columns=columns, reason=np.array(reason))
            logger.info(f"the last {len(rows)} cycles are written to {path}")
        except OSError as error:
            logger.error(f"the record of the fault cannot be written: {error}")

    threading.Thread(target=write, name="history", daemon=True).start()


def _log_folder() -> Path:
    """Where ROS puts its logs, and ours in a folder of its own."""
    if os.environ.get("ROS_LOG_DIR"):
        return Path(os.environ["ROS_LOG_DIR"]) / "rnea_ros"
    return Path(os.environ.get("ROS_HOME", "~/.ros")).expanduser() / "log" / "rnea_ros"
