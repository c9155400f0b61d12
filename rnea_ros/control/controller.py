"""The controller without ROS: state in, command out, driven by explicit time.

Times are integer nanoseconds of one clock: `stamp` is when a state was measured, `arrival` and `now` are when this
process sees it. Nothing here reads a clock, so that whole runs replay in virtual time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnea_ros.control import checks
from rnea_ros.control.errors import ParameterError, Refusal
from rnea_ros.control.frames import frame_in_tip
from rnea_ros.control.gate import Gate
from rnea_ros.control.history import History
from rnea_ros.control.joint_states import JUMP_FACTOR, JointStateReader, speed_limits
from rnea_ros.control.laws import Arm, Laws
from rnea_ros.control.monitor import Monitor
from rnea_ros.control.observer import MomentumObserver
from rnea_ros.control.parameters import BY_NAME, SELF
from rnea_ros.control.reference import Reference
from rnea_ros.control.settings import build
from rnea_ros.control.supervisor import Action, Event, Mode, Supervisor
from rnea_ros.control.timekeeping import Time, Timekeeper
from rnea_ros.control.trajectory import Point, TrajectoryRequest
from rnea_ros.model.robot import RobotModel

Array = NDArray[np.float64]

AT_REST = 0.05  # rad/s: slower than this, a braking arm is held
BRAKING_TIME = 300_000_000  # ns: after this a braking arm is held anyway
FRESH = 100_000_000  # ns: activation needs a state not older than this
LONGEST_GOODBYE = 1000  # commands


class Drive(Enum):
    """Which law makes the command."""

    LAW = auto()  # the chosen law about the reference
    FLOAT = auto()
    BRAKE = auto()
    RAMP = auto()  # to zero, where the hardware carries gravity


@dataclass
class Command:
    """What to publish. `effort` is (n,) Nm in controller order and is written again in the next cycle."""

    effort: Array
    stamp: int  # of the state it was computed from
    mode: str


class Controller:
    """Everything that decides. Raises ParameterError where `values` cannot be used with `robot`.

    Messages for a person are collected in `messages` as (level, line), level one of "info", "warning", "error".
    """

    def __init__(self, robot: RobotModel, values: Mapping[str, Any]) -> None:
        self.robot = robot
        settings = build(values, robot)
        self.arm = Arm(robot, settings)
        self._survey = checks.survey(self.arm.dynamics)
        settings = checks.completed(settings, self._survey, robot.joint_names)
        self.messages: list[tuple[str, str]] = [
            ("warning", line) for line in checks.check(settings, self._survey, robot.joint_names)
        ]
        self.settings = settings
        n = robot.n
        limits = speed_limits(robot)
        self._margin = np.minimum(settings["limits.position_margin"], 0.25 * (robot.upper - robot.lower))
        self.soft_lower, self.soft_upper = robot.lower + self._margin, robot.upper - self._margin
        self.reader = JointStateReader(
            robot.joint_names,
            robot.continuous,
            jump_limits=JUMP_FACTOR * limits,
            needs_effort=settings["effort_state"] != "ignored",
        )
        self.timekeeper = Timekeeper(settings["max_state_age"], settings["blind_fault"])
        self.reference = Reference(
            robot.joint_names,
            self.soft_lower,
            self.soft_upper,
            limits,
            robot.continuous,
            settings["reference_timeout"],
        )
        self.laws = Laws(self.arm, settings)
        self.gate = Gate(settings.effort_limit, settings.effort_rate, settings.period)
        self.monitor = Monitor(robot.joint_names, settings)
        self.supervisor = Supervisor()
        self.observer = MomentumObserver(self.arm, settings.period)
        self.history = History(n, round(settings["history.seconds"] * settings["rate"]))
        self.drive = Drive.LAW
        self.blind = False
        self.ahead = np.zeros((3, n))
        self.error = np.zeros((2, n))
        self.desired, self.support, self.share = np.zeros(n), np.zeros(n), np.zeros(n)
        self.wrench: Array | None = None
        self._latency = round(settings.latency * 1e9)
        self._command = Command(np.zeros(n), 0, self.supervisor.text)
        self._commanded_at = 0  # when the last command was made
        self._seen_at = 0  # last time that this process ran
        self._arrival: int | None = None  # of the last state taken
        self._begun = 0  # stamp from which the feedback ramps up
        self._brake_since: int | None = None
        self._releasing = False
        self._wrench_at = 0
        self._said: set[str] = set()
        self._publishers: dict[str, list[str]] = {}

    def warm_up(self) -> None:
        """Run every kernel once, so that whatever is compiled or cached is so before the first state."""
        q = np.clip(np.zeros(self.robot.n), self.soft_lower, self.soft_upper)
        zero = np.zeros_like(q)
        self.arm.support(q, self.arm.share(q))
        self.arm.dynamics.torque(q, zero, zero, np.zeros(6) if self.robot.tip is not None else None)
        self.arm.dynamics.terms(q, zero, zero)
        self.observer.update(0, q, zero, zero)
        self.observer.restart()

    # What comes in, every cycle

    def on_state(
        self,
        names: Sequence[str],
        position: Sequence[float],
        velocity: Sequence[float],
        effort: Sequence[float],
        stamp: int,
        arrival: int,
    ) -> Command | None:
        """A joint state. Returns the command to publish; None where the message is passed over, or in mode idle."""
        stamp = stamp or arrival
        verdict, passed = self.timekeeper.judge(stamp, arrival)
        if verdict is Time.JUMPED:
            self.reader.reset()
        if passed is None:
            passed = self.reader.read(names, position, velocity, effort, stamp)
        if passed is not None:
            self.monitor.pass_over(passed)
            self._accept_new_encoder(passed.reason, arrival)
            return None
        self.monitor.taken()
        self.timekeeper.accept(stamp, arrival)
        self._arrival = self._seen_at = arrival
        self.blind = False
        if not self.reader.velocity_measured:
            self._say_once("info", "joint states carry no velocity: it is the filtered difference of the position")
        if self.supervisor.mode is Mode.IDLE:
            return None
        if verdict is Time.JUMPED:
            self._jump()
        return self._cycle(stamp, arrival)

    def tick(self, now: int) -> Command | None:
        """Time has passed, whether or not states arrived. Returns a command where the arm is blind."""
        gone_on = 0 <= now - self._seen_at <= self.settings["blind_fault"] * 1e9
        self._seen_at = now
        if self.supervisor.mode is Mode.IDLE or self._arrival is None:
            return None
        if not gone_on:  # the clock jumped, or this process slept: the states of before say nothing
            self._arrival = now
        silent = (now - self._arrival) * 1e-9
        if silent < self.settings.state_timeout:
            return None
        if silent >= self.settings["blind_fault"] and self.supervisor.mode is not Mode.FAULT:
            self.fault(self._blind_line(silent))
        self.blind = True
        return self._support_blindly(now)

    # What people ask for

    def activate(self, now: int, previous: Array | None = None) -> Command:
        """From idle to hold. Returns the first command, to be published before the activation completes.

        previous: the last command that the joints saw (after a watchdog's turn); None: see `gate.py` and `laws.py`.
        Raises Refusal where the arm's state is not known, or it is not fit to be held.
        """
        self.supervisor.allowed(Event.ACTIVATE)
        if self.reader.stamp is None or self._arrival is None or abs(now - self._arrival) > FRESH:
            last = self.monitor.last_passed_over
            why = f"; last passed over: {last.line}" if last is not None else ""
            raise Refusal(f"activate: no fresh joint state; is the broadcaster active?{why}")
        self._check_fit()
        self._seen_at = now
        transition = self.supervisor.handle(Event.ACTIVATE)
        stamp = self.reader.stamp
        self._perform(transition.action, stamp)
        if previous is not None:
            self.gate.restart(previous)
        elif self.settings["gravity_source"] == SELF:
            self._support(self.reader.position)
            first = np.empty(self.robot.n)
            self.gate.restart(self.gate.bounded(self.support, self.share, self.support, first))
        else:
            self.gate.restart(np.zeros(self.robot.n))
        self._commanded_at = now - round(self.settings.period * 1e9)
        if self.settings["initial_mode"] == "gravity_compensation":
            self.request(Event.FLOAT)
        return self._cycle(stamp, now)

    def deactivate(self, now: int) -> list[Command]:
        """To idle. Returns the commands to publish, one period apart: to gravity support, which may be zero, at the
        effort rate."""
        was_active = self.supervisor.mode is not Mode.IDLE
        self.supervisor.handle(Event.DEACTIVATE)
        if not was_active:
            return []
        self._support(self.reader.position)
        commands: list[Command] = []
        while len(commands) < LONGEST_GOODBYE:
            command = self._gated(self.support, self._commanded_at + round(self.settings.period * 1e9))
            commands.append(Command(command.effort.copy(), command.stamp, command.mode))
            if not self.gate.slowed.any():
                break
        return commands

    def request(self, event: Event) -> str:
        """Float, hold, stop, reset or cancel. Returns what happens, one line; raises Refusal."""
        transition = self.supervisor.handle(event)
        self._perform(transition.action, self.reader.stamp or 0)
        return f"{self.supervisor.text}: {transition.action.value}"

    def on_trajectory(self, request: TrajectoryRequest) -> str:
        """Start a trajectory, or cancel with an empty one. Raises Refusal; the arm then goes on as it was."""
        if not request.points:
            return self.request(Event.CANCEL)
        self._require_tracking("joint_trajectory")
        transition = self.supervisor.allowed(Event.TRAJECTORY)
        stamp = self._start_from(transition.action)
        self.reference.follow(
            request,
            stamp,
            self.settings["limits.start_tolerance"],
            self.settings["splice_time"],
            self.settings.braking_acceleration,
        )
        self.supervisor.handle(Event.TRAJECTORY)
        self._releasing = False
        self.drive = Drive.LAW
        return f"tracking: {len(request.points)} points"

    def on_reference(self, point: Point, now: int) -> None:
        """A streamed set point in controller order. Raises Refusal; the arm then goes on as it was."""
        self._require_tracking("reference")
        transition = self.supervisor.allowed(Event.TRAJECTORY)
        stamp = self._start_from(transition.action)
        self.reference.stream(point, stamp, now, self.settings["limits.start_tolerance"])
        if self.supervisor.mode is not Mode.TRACKING or self.drive is not Drive.LAW:
            self.supervisor.handle(Event.TRAJECTORY)
        self._releasing = False
        self.drive = Drive.LAW

    def on_wrench(self, wrench: Array, frame: str, now: int) -> None:
        """What the environment exerts on the tip body: (6,) force N then moment Nm, about the origin of `frame` and in its
        axes; an empty name is the tip. Raises Refusal."""
        if not np.isfinite(wrench).all():
            raise Refusal("external_wrench: a value is not finite")
        rotation, translation = frame_in_tip(self.robot, frame, "external_wrench")
        force, moment = rotation @ wrench[:3], rotation @ wrench[3:]
        self.wrench = np.concatenate([force, moment + np.cross(translation, force)])
        self._wrench_at = now

    def on_payload(self, mass: float, com: Array, inertia: Array, frame: str) -> None:
        """Another payload: kg, com (3,) m in `frame`, inertia (3, 3) kg m² about com in its axes; an empty name is the
        tip, mass 0 is none. Raises Refusal. The command follows at the effort rate."""
        rotation, translation = frame_in_tip(self.robot, frame, "payload")
        com, inertia = rotation @ com + translation, rotation @ inertia @ rotation.T
        if mass == 0.0:
            com, inertia = np.zeros(3), np.zeros((3, 3))
        try:
            self.set_parameters(
                {
                    "payload.mass": float(mass),
                    "payload.com": com.tolist(),
                    "payload.inertia": inertia[np.triu_indices(3)].tolist(),
                }
            )
        except ParameterError as error:
            raise Refusal(f"payload: {error}") from None

    def on_publishers(self, topic: str, nodes: Sequence[str]) -> None:
        """Who publishes on one of our input topics; two on a topic that moves the arm are refused."""
        self._publishers[topic] = list(nodes)

    def set_parameters(self, changes: Mapping[str, Any]) -> None:
        """Change live parameters, all or none. Raises ParameterError."""
        for name in changes:
            if name in BY_NAME and not BY_NAME[name].live:
                raise ParameterError(f"parameter {name!r} is read at configure: deactivate and clean up first")
        settings = build({**self.settings.values, **changes}, self.robot)
        settings = checks.completed(settings, self._survey, self.robot.joint_names)
        warnings = checks.check(settings, self._survey, self.robot.joint_names)
        self.messages += [("warning", line) for line in warnings]
        self.settings = settings
        self.laws.take(settings)
        self.monitor.take(settings)
        self.gate.effort_limit, self.gate.rate_limit = settings.effort_limit, settings.effort_rate
        self.arm.set_payload(settings.payload)

    def fault(self, line: str) -> None:
        """Enter the fault mode with its one line, or stay in it."""
        if self.supervisor.mode in (Mode.IDLE, Mode.FAULT):
            return
        transition = self.supervisor.handle(Event.FAULT, line)
        self.messages.append(("error", f"fault: {line}"))
        self._perform(transition.action, self.reader.stamp or 0)

    # The cycle

    def _cycle(self, stamp: int, arrival: int) -> Command:
        q, qd = self.reader.position, self.reader.velocity
        self._support(q)
        at = self._advance(stamp)
        np.subtract(at[0], q, self.error[0])
        np.subtract(at[1], qd, self.error[1])
        self._watch(stamp, qd)
        if self.drive is Drive.BRAKE:
            self._end_braking(stamp, q, qd)
        desired = self._desired(stamp, arrival, q, qd)
        period = (arrival - self._commanded_at) * 1e-9
        command = self._gated(desired, arrival)
        if self.drive is Drive.LAW:
            self.laws.integrate(self.error[0], min(max(period, 0.0), self.settings.period), self.gate.clamped)
        self.history.add(stamp, self.supervisor.mode, q, qd, self.reference.state, command.effort)
        self.observer.update(stamp, q, qd, self._total_torque())
        self._watch_contact()
        self._after(command)
        return command

    def _desired(self, stamp: int, arrival: int, q: Array, qd: Array) -> Array:
        if self.drive is Drive.LAW:
            self.reference.sample(stamp + self._latency, self.ahead)
            if self.wrench is not None and arrival - self._wrench_at > self.settings["wrench_timeout"] * 1e9:
                self.wrench = None
            tracking = self.supervisor.mode is Mode.TRACKING
            scale = self._ramp(stamp)
            state = self.reference.state
            return self.laws.motion(q, qd, state, self.ahead, self.share, self.support, scale, tracking, self.wrench)
        if self.drive is Drive.FLOAT:
            return self._pushed_back(self.laws.floating(qd, self.support), q, qd)
        if self.drive is Drive.BRAKE:
            return self.laws.braking(qd, self.support)
        return self.support

    def _gated(self, desired: Array, now: int) -> Command:
        self.desired = desired
        command = self._command
        period = (now - self._commanded_at) * 1e-9
        finite = self.gate.apply(self.support, self.share, desired, period, command.effort)
        self._commanded_at = now
        self.monitor.count_limits(self.gate.clamped, self.gate.slowed)
        if not finite:
            self.fault("the computed torque is not finite; the last command is kept; check gains and payload")
        command.stamp = self.reader.stamp or 0
        command.mode = self.supervisor.text
        return command

    def _after(self, command: Command) -> None:
        """Where the hardware carries gravity, a ramp that has reached zero ends in silence."""
        if self._releasing and self.drive is Drive.LAW and not self.reference.moving:
            self.drive = Drive.RAMP
        elif self._releasing and self.drive is Drive.RAMP and not command.effort.any():
            self._releasing = False
            self.supervisor.handle(Event.RELEASED)

    def _support_blindly(self, now: int) -> Command:
        """Gravity support at the last position, without damping: a stale velocity would be a constant push."""
        self._support(self.reader.position)
        return self._gated(self.support, now)

    def _support(self, q: Array) -> None:
        self.share = self.arm.share(q)
        self.support = self.arm.support(q, self.share)

    def _advance(self, stamp: int) -> Array:
        settings = self.settings
        try:
            self.reference.advance(
                stamp, settings["limits.start_tolerance"], settings["splice_time"], settings.braking_acceleration
            )
        except Refusal as refusal:
            self.messages.append(("error", str(refusal)))
        if self.supervisor.mode is Mode.TRACKING:
            if self.reference.stale(stamp):
                self.messages.append(("warning", "reference timed out: braking into a hold"))
                self.request(Event.STALE)
            elif not self.reference.moving:
                self.request(Event.DONE)
        return self.reference.state

    def _watch(self, stamp: int, qd: Array) -> None:
        line = self.monitor.speed_fault(qd) or self.monitor.slow_states(self.timekeeper.rate, self.timekeeper.intervals)
        if line is None and self.drive is Drive.LAW:
            line = self.monitor.tracking_fault(self.error[0])
            self.messages += [("warning", text) for text in self.monitor.tracking_warnings(self.error[0])]
        if line is None:
            return
        if self.supervisor.mode is Mode.FAULT:
            if self.drive is Drive.LAW:  # held, and moving again: brake again
                self._perform(Action.BRAKE_SUPPORTED, stamp)
        else:
            self.fault(line)

    def _watch_contact(self) -> None:
        action = self.settings["contact.action"]
        if action == "none" or self.supervisor.mode not in (Mode.HOLD, Mode.TRACKING) or not self.observer.settled:
            return
        line = self.monitor.contact(self.observer.external)
        if line is None:
            return
        if action == "float":
            self.messages.append(("warning", f"{line}: floating"))
            self.request(Event.FLOAT)
        elif self.supervisor.mode is Mode.TRACKING:
            self.messages.append(("warning", f"{line}: holding"))
            self.request(Event.CONTACT)

    def _pushed_back(self, torque: Array, q: Array, qd: Array) -> Array:
        """Beyond a soft limit the floating arm is pushed back by a spring, and slowed while it goes further."""
        beyond = np.minimum(q - self.soft_lower, 0.0) + np.maximum(q - self.soft_upper, 0.0)
        if not beyond.any():
            return torque
        assert self.settings.position_stiffness is not None
        push = -self.settings.position_stiffness * beyond
        push -= np.where(beyond * qd > 0.0, self.laws.braking_damping * qd, 0.0)
        self.laws.feedback += push
        return torque + push

    def _ramp(self, stamp: int) -> float:
        ramp = self.settings["enabling.ramp"]
        return 1.0 if ramp <= 0.0 else min((stamp - self._begun) * 1e-9 / ramp, 1.0)

    def _end_braking(self, stamp: int, q: Array, qd: Array) -> None:
        if self._brake_since is None:
            self._brake_since = stamp
        if np.abs(qd).max() > AT_REST and stamp - self._brake_since < BRAKING_TIME:
            return
        if self.arm.carries_all:
            self.drive = Drive.RAMP
            return
        self._perform(Action.BRAKE_ARM, stamp)
        self._advance(stamp)

    # Transitions

    def _perform(self, action: Action, stamp: int) -> None:
        """Do what a transition asks for, from the last state on."""
        q, qd = self.reader.position, self.reader.velocity
        self._releasing = False
        floating = self.drive is not Drive.LAW
        if action is Action.BEGIN:
            self.reference.hold(q)
            self.laws.restart()
            self.monitor.restart()
            self.observer.restart()
            self._begun = stamp
            self.drive = Drive.LAW
        elif action is Action.BRAKE_ARM or (action is Action.RELEASE and floating):
            self.reference.move_from(np.vstack([q, qd, np.zeros_like(q)]))
            self.reference.brake(stamp, self.settings.braking_acceleration)
            self.laws.restart()
            self.monitor.restart()
            self.drive = Drive.LAW
        elif action in (Action.BRAKE_REFERENCE, Action.RELEASE):
            self.reference.brake(stamp, self.settings.braking_acceleration)
        elif action is Action.FLOAT:
            self.drive = Drive.FLOAT
            self.laws.restart()
        elif action is Action.BRAKE_SUPPORTED:
            self.drive = Drive.BRAKE
            self.laws.restart()
            self._brake_since = None
        if action is Action.RELEASE:
            self._releasing = self.arm.carries_all

    def _start_from(self, action: Action) -> int:
        """Stamp and state from which a new motion starts: the last reference, or the arm where it floats."""
        stamp = self.reader.stamp or 0
        if action is Action.FOLLOW_FROM_ARM:
            q, qd = self.reader.position, self.reader.velocity
            moving = np.abs(qd).max() > AT_REST
            self.reference.move_from(np.vstack([q, qd if moving else np.zeros_like(q), np.zeros_like(q)]))
        return stamp

    def _jump(self) -> None:
        self.messages.append(("warning", "the clock jumped: the arm is held where it is"))
        transition = self.supervisor.handle(Event.TIME_JUMP)
        self._perform(transition.action, self.reader.stamp or 0)

    def _accept_new_encoder(self, reason: str, arrival: int) -> None:
        """A position that has jumped and stays there is taken, in a fault."""
        if reason != "position jump" or self._arrival is None:
            return
        if (arrival - self._arrival) * 1e-9 > 0.5 * self.settings["blind_fault"]:
            last = self.monitor.last_passed_over
            self.fault(f"{last.line if last else 'a position jumped'} and stays there; check the encoder, then ~/reset")
            self.reader.reset()

    def _require_tracking(self, topic: str) -> None:
        nodes = self._publishers.get(topic, [])
        if len(nodes) > 1:
            raise Refusal(f"{topic}: refused, {len(nodes)} nodes publish on it: {', '.join(nodes)}; one must stop")
        slow = self.monitor.slow_states(self.timekeeper.rate, self.timekeeper.intervals)
        if slow is not None:
            raise Refusal(f"{topic}: refused, {slow}")
        if self.blind:
            raise Refusal(f"{topic}: refused while no joint states arrive")

    def _check_fit(self) -> None:
        q, qd, robot = self.reader.position, self.reader.velocity, self.robot
        slow = self.monitor.slow_states(self.timekeeper.rate, self.timekeeper.intervals)
        if slow is not None:
            raise Refusal(f"activate: {slow}")
        for index, name in enumerate(robot.joint_names):
            slack = 0.1
            if not robot.lower[index] - slack <= q[index] <= robot.upper[index] + slack:
                raise Refusal(
                    f"activate: {name!r} stands at {q[index]:.4g}, outside {robot.lower[index]:.4g} .. "
                    f"{robot.upper[index]:.4g}; check zero and sign of its encoder"
                )
            if abs(qd[index]) > self.settings["enabling.speed"]:
                raise Refusal(
                    f"activate: {name!r} moves at {qd[index]:.3g} rad/s, at most {self.settings['enabling.speed']:g} is "
                    "taken; let the arm come to rest"
                )

    def _total_torque(self) -> Array:
        """What acts on the joints, (n,): measured where the parameter says how, else commanded."""
        measured = self.reader.effort
        if self.settings["effort_state"] == "total" and np.isfinite(measured).all():
            return measured
        if self.settings["effort_state"] == "command" and np.isfinite(measured).all():
            return np.asarray(measured + self.share)
        return np.asarray(self.gate.previous + self.share)

    def _blind_line(self, silent: float) -> str:
        last = self.monitor.last_passed_over
        if self.monitor.passed_over_in_a_row and last is not None:
            return (
                f"no usable joint state for {silent * 1e3:.0f} ms: {self.monitor.passed_over_in_a_row} passed over, the last "
                f"because of {last.line}"
            )
        return f"no joint state for {silent * 1e3:.0f} ms; only gravity is supported; check the broadcaster, then ~/reset"

    def _say_once(self, level: str, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self.messages.append((level, line))

    def take_messages(self) -> list[tuple[str, str]]:
        """The lines for a person since the last call."""
        taken, self.messages = self.messages, []
        return taken
