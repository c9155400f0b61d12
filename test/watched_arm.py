"""A simulated arm, the controller and the watchdog in virtual time, with a network between them that can fail."""

from __future__ import annotations

import copy
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np

from rnea_ros.control.controller import Command, Controller
from rnea_ros.control.errors import Refusal
from rnea_ros.control.handover import GOODBYE, LEFT, Status
from rnea_ros.control.watchdog import TICK, Recent, StateMessage, Watchdog
from rnea_ros.model.robot import RobotModel
from rnea_ros.model.urdf import load_urdf
from rnea_ros.simulation.arm import Imperfections, SimulatedArm
from rnea_ros.simulation.physics import Physics

URDF = Path(__file__).parent.parent / "urdf"
MILLISECOND = 1_000_000
START = 1_000_000_000_000  # ns: when virtual time begins
HOME = {"panda": [0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4], "planar_2r": [0.4, 0.9]}
GAINS: dict[str, dict[str, Any]] = {
    "panda": {
        "feedforward_pd.kp": [100.0, 100.0, 100.0, 100.0, 40.0, 25.0, 12.0],
        "feedforward_pd.kd": [20.0, 20.0, 20.0, 20.0, 6.0, 4.0, 2.0],
        "gravity_compensation.damping": [1.0],
    },
    "planar_2r": {"feedforward_pd.kp": [75.0, 80.0], "feedforward_pd.kd": [5.0, 2.0]},
}
CONTROLLER, WATCHDOG = "controller", "watchdog"


class WatchedArm:
    """One millisecond a step. `sent` holds (time ns, who, effort) of every command that left.

    Switches: `controller_runs` and `watchdog_runs` (False: frozen by SIGSTOP), `states_arrive`, `heartbeats_arrive`,
    `status_arrives`. A controller of None is dead; `start_controller` makes a new one, which activates when it can.
    """

    def __init__(
        self,
        name: str = "panda",
        gravity_source: str = "self",
        watchdog_latency: int = 2,
        imperfections: Imperfections | None = None,
        **parameters: Any,
    ) -> None:
        """watchdog_latency: ms that heartbeats and statuses take. parameters of the watchdog: with `__` for a dot."""
        self.robot: RobotModel = load_urdf(URDF / f"{name}.urdf")
        self.arm = SimulatedArm(
            str(URDF / f"{name}.urdf"),
            initial_positions=HOME[name],
            physics=Physics(timestep=1e-3),
            imperfections=imperfections or Imperfections(encoder_noise=1e-5, velocity_noise=1e-3, delay=1),
            adds_gravity=gravity_source == "hardware",
        )
        self._controller_values = {"gravity_source": gravity_source, "history.seconds": 0.0, **GAINS[name]}
        watchdog_values = {key.replace("__", "."): value for key, value in parameters.items()}
        self._states: deque[StateMessage] = deque(maxlen=8)
        self._last_command: np.ndarray | None = None
        recent = Recent(lambda: list(self._states), lambda: self._last_command)
        self.watchdog = Watchdog(self.robot, {"gravity_source": gravity_source, **watchdog_values}, recent)
        self.controller: Controller | None = None
        self.controller_runs = self.watchdog_runs = True
        self.states_arrive = self.heartbeats_arrive = self.status_arrives = True
        self.leave_controller_alone = False  # True: it does not activate by itself
        self.delay = watchdog_latency
        self.now = START
        self.sent: list[tuple[int, str, np.ndarray]] = []
        self.take_overs: list[int] = []
        self.lines: list[str] = []
        self._to_watchdog: deque[tuple[int, int, str]] = deque()  # when it arrives, stamp, says
        self._to_controller: deque[tuple[int, str, int, np.ndarray | None]] = deque()
        self._pending_state: StateMessage | None = None  # the one that a frozen controller finds in its queue
        self.start_controller()

    # What happens

    def start_controller(self) -> None:
        self.controller = Controller(self.robot, self._controller_values)
        self.controller_runs = True
        self._pending_state = None

    def kill_controller(self) -> None:
        self.controller = None

    def exit_controller(self) -> None:
        """A clean end."""
        assert self.controller is not None
        for command in self.controller.deactivate(self.now):
            self._controller_sends(command)
        self._heartbeat(self.controller.reader.stamp or 0, LEFT if self.controller.arm.carries_all else GOODBYE)
        self.controller = None

    def run(self, seconds: float) -> np.ndarray:
        """Positions (steps, n)."""
        positions = []
        for _ in range(round(seconds * 1000)):
            self.step()
            positions.append(self.arm.position.copy())
        return np.array(positions)

    def step(self) -> None:
        self.now += MILLISECOND
        self.arm.step()
        measured = self.arm.state()
        message = StateMessage(
            self.arm.joint_names, measured.position, measured.velocity, measured.effort, self.now, self.now, self.now
        )
        self._step_controller(message if self.states_arrive else None)
        if self.watchdog_runs:
            self._step_watchdog(message if self.states_arrive else None)

    def _step_controller(self, message: StateMessage | None) -> None:
        core = self.controller
        if core is None:
            return
        if not self.controller_runs:
            self._pending_state = self._pending_state or message
            return
        while self._to_controller and self._to_controller[0][0] <= self.now:
            _, status, stamp, command = self._to_controller.popleft()
            core.on_watchdog(status, stamp, command, self.now)
        for state in (self._pending_state, message):
            if state is not None:
                self._controller_sends(
                    core.on_state(state.names, state.position, state.velocity, [], state.stamp, self.now)
                )
        self._pending_state = None
        if (self.now // MILLISECOND) % 5 == 0:
            self._controller_sends(core.tick(self.now))
            if core.mode.value == "idle" and not self.leave_controller_alone:
                try:
                    self._controller_sends(core.activate(self.now))
                except Refusal as refusal:
                    self.lines.append(str(refusal))
        self.lines += [line for _, line in core.take_messages()]

    def _step_watchdog(self, message: StateMessage | None) -> None:
        core = self.watchdog
        while self._to_watchdog and self._to_watchdog[0][0] <= self.now:
            _, stamp, says = self._to_watchdog.popleft()
            self._watchdog_sends(core.on_heartbeat(stamp, says, self.now))
        if message is not None:
            self._states.append(message)
            self._watchdog_sends(core.on_state(message))
        if (self.now - START) % TICK == 0:
            self._watchdog_sends(core.tick(self.now))
        if core.announce:
            core.announce = False
            command = core.gate.previous if core.status is Status.ACTIVE else core.turn_command
            if self.status_arrives:
                sent = None if command is None else command.copy()
                self._to_controller.append((self.now + self.delay * MILLISECOND, core.status.value, self.now, sent))
        if core.take_overs > len(self.take_overs):
            self.take_overs.append(self.now)
        self.lines += [line for _, line in core.messages]
        core.messages = []

    def _controller_sends(self, command: Command | None) -> None:
        if command is None:
            return
        if command.effort is not None:
            self._send(CONTROLLER, command.effort)
        self._heartbeat(command.stamp, command.mode)

    def _heartbeat(self, stamp: int, says: str) -> None:
        if self.heartbeats_arrive:
            self._to_watchdog.append((self.now + self.delay * MILLISECOND, stamp, says))

    def _watchdog_sends(self, effort: np.ndarray | None) -> None:
        if effort is not None:
            self._send(WATCHDOG, effort)

    def _send(self, who: str, effort: np.ndarray) -> None:
        effort = copy.copy(effort)
        assert np.isfinite(effort).all()
        assert (np.abs(effort) <= self.watchdog.settings.effort_limit + 1e-9).all()
        self.sent.append((self.now, who, effort))
        self._last_command = effort
        self.arm.receive(effort)

    # What is asked of it

    def senders(self, since: int) -> set[str]:
        return {who for time, who, _ in self.sent if time >= since}

    def longest_overlap(self) -> float:
        """s: the longest time in which both commanded, each at least every 3 ms."""
        last = {CONTROLLER: -START, WATCHDOG: -START}
        longest = since = 0
        for time, who, _ in self.sent:
            last[who] = time
            if min(last.values()) >= time - 3 * MILLISECOND:
                since = since or time
                longest = max(longest, time - since)
            else:
                since = 0
        return longest * 1e-9

    def largest_excess(self) -> float:
        """Nm by which a command of the watchdog left the rate limit, as seen from its own last command or from the last
        one of all."""
        bound = self.watchdog.settings.effort_rate * 1e-3
        excess = 0.0
        last: np.ndarray | None = None
        own: np.ndarray | None = None
        for _, who, effort in self.sent:
            if who == WATCHDOG:
                steps = [np.abs(effort - before) for before in (last, own) if before is not None]
                if steps:
                    excess = max(excess, min(float((step - bound).max()) for step in steps))
                own = effort
            last = effort
        return excess
