"""The controller without ROS: state in, command out, driven by explicit time.

Times are integer nanoseconds of one clock: `stamp` is when a state was measured, `arrival` and `now` are when this
process sees it. Nothing here reads a clock, so that whole runs replay in virtual time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnea_ros.control import checks
from rnea_ros.control.drive import Drive, Way
from rnea_ros.control.errors import ParameterError, Refusal
from rnea_ros.control.frames import frame_in_tip
from rnea_ros.control.handover import WAITING
from rnea_ros.control.history import History
from rnea_ros.control.joint_states import JUMP_FACTOR, JointStateReader, Values, speed_limits
from rnea_ros.control.laws import Arm
from rnea_ros.control.monitor import Monitor
from rnea_ros.control.observer import MomentumObserver
from rnea_ros.control.parameters import BY_NAME, SELF
from rnea_ros.control.settings import Settings, build
from rnea_ros.control.supervisor import Action, Event, Mode, Supervisor
from rnea_ros.control.timekeeping import Time, Timekeeper
from rnea_ros.control.trajectory import LARGEST, Point, TrajectoryRequest
from rnea_ros.control.turn import Turn
from rnea_ros.model.robot import RobotModel

Array = NDArray[np.float64]

FRESH = 100_000_000  # ns: activation needs a state not older than this
AWAKE = 20_000_000  # ns: a process that looks less often than this sleeps in between
JUMPED = 5  # states in a row in which a position has jumped: it is there
LONGEST_GOODBYE = 1000  # commands


@dataclass
class Command:
    """What to publish. `effort` is (n,) Nm in controller order and is written again in the next cycle; None: only the
    heartbeat, because the watchdog has the arm."""

    effort: Array | None
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
        settings = checks.completed(settings, self._survey)
        self.messages: list[tuple[str, str]] = [
            ("warning", line) for line in checks.check(settings, self._survey, robot.joint_names)
        ]
        self.settings = settings
        self.reader = JointStateReader(
            robot.joint_names,
            robot.continuous,
            jump_limits=JUMP_FACTOR * speed_limits(robot),
            needs_effort=settings["effort_state"] != "ignored",
        )
        self.drive = Drive(self.arm, self.reader, settings)
        self.timekeeper = Timekeeper(settings["max_state_age"], settings["blind_fault"])
        self.monitor = Monitor(robot.joint_names, settings)
        self.supervisor = Supervisor()
        self.observer = MomentumObserver(self.arm)
        self.history = History(robot.n, round(settings["history.seconds"] * settings["rate"]))
        self.blind = False
        self.turn = Turn(settings.period)
        self._waited = False  # in the last cycle, for the watchdog
        self._command = Command(self.drive.effort, 0, self.supervisor.text)
        self._unfinished: int | None = None  # stamp of a cycle that `finish` has not seen
        self._seen_at = 0  # last time that this process ran
        self._arrival: int | None = None  # of the last state taken
        self._jumps = 0  # states in a row in which a position had jumped
        self._said: set[str] = set()
        self._publishers: dict[str, list[str]] = {}

    @property
    def waiting(self) -> bool:
        """Whether the watchdog has the arm, or may have it."""
        return self._waited

    @property
    def mode(self) -> Mode:
        return self.supervisor.mode

    def warm_up(self) -> None:
        """Run every kernel once, so that whatever is compiled or cached is so before the first state."""
        q = np.clip(np.zeros(self.robot.n), self.drive.soft_lower, self.drive.soft_upper)
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
        position: Values,
        velocity: Values,
        effort: Values,
        stamp: int,
        arrival: int,
    ) -> Command | None:
        """A joint state. Returns the command to publish; None in mode idle, and where the message is passed over and
        the arm is not blind yet. Call `finish` once it is published."""
        self.finish()
        stamp = stamp or arrival
        self._pass_time(arrival)
        verdict, passed = self.timekeeper.judge(stamp, arrival)
        if verdict is Time.JUMPED:
            self.reader.reset()
        if passed is None:
            passed = self.reader.read(names, position, velocity, effort, stamp)
        if passed is not None:
            self.monitor.pass_over(passed)
            self._accept_new_encoder(passed.reason)
            return self.tick(arrival)
        self.monitor.taken()
        self._jumps = 0
        self.timekeeper.accept(stamp, arrival)
        self._arrival = arrival
        self.blind = False
        if not self.reader.velocity_measured:
            self._say_once("info", "joint states carry no velocity: it is the filtered difference of the position")
        if self.mode is Mode.IDLE:
            return None
        if verdict is Time.JUMPED:
            self.drive.forget_times()
            self._happen(Event.TIME_JUMP, "the clock jumped, or this process stood still: the arm is braked and held")
        if not self._is_ours(arrival):
            return Command(None, stamp, WAITING)
        return self._cycle(stamp, arrival)

    def tick(self, now: int) -> Command | None:
        """Time has passed, whether or not states arrived. Returns a command where the arm is blind."""
        self.finish()
        self._pass_time(now)
        if self.mode is Mode.IDLE or self._arrival is None:
            return None
        mine = self._is_ours(now)
        silent = (now - self._arrival) * 1e-9
        if silent < self.settings.state_timeout:
            return None
        self.blind = True
        if not mine:
            return Command(None, self.reader.stamp or 0, WAITING)
        if silent >= self.settings["blind_fault"] and self.mode is not Mode.FAULT:
            self.fault(self._blind_line(silent))
        return self._finished(self.drive.support_blindly(now))

    # What people ask for

    def activate(self, now: int, previous: Array | None = None) -> Command:
        """From idle to hold. Returns the first command, to be published before the activation completes.

        previous: the last command that the joints saw (after a watchdog's turn). None: gravity support where nothing
        but our command carries the arm, zero otherwise. Raises Refusal where the arm's state is not known, or not fit.
        """
        self.supervisor.allowed(Event.ACTIVATE)
        if self.reader.stamp is None or self._arrival is None or abs(now - self._arrival) > FRESH:
            last = self.monitor.last_passed_over
            why = f"; last passed over: {last.line}" if last is not None else ""
            raise Refusal(f"activate: no fresh joint state; is the broadcaster active?{why}")
        self._check_fit()
        self._seen_at = now
        self._happen(Event.ACTIVATE)
        if previous is None and self.settings["gravity_source"] != SELF:
            previous = np.zeros(self.robot.n)
        self.drive.begin(now, previous)
        self._waited = not self.turn.begin(now)
        if self._waited:
            return Command(None, self.reader.stamp, WAITING)
        if self.settings["initial_mode"] == "gravity_compensation":
            self.request(Event.FLOAT)
        return self._cycle(self.reader.stamp, now)

    def deactivate(self, now: int) -> list[Command]:
        """To idle. Returns the commands to publish, one period apart: to gravity support, which may be zero, at the
        effort rate."""
        self.finish()
        self.drive.releasing = False
        was_commanding = self.mode is not Mode.IDLE and not self._waited
        mode = self.supervisor.text  # still the one that commands: `idle` would tell the watchdog that nobody has to
        self.supervisor.handle(Event.DEACTIVATE)
        commands: list[Command] = []
        while was_commanding and len(commands) < LONGEST_GOODBYE:
            reached = self.drive.next_goodbye()
            commands.append(Command(self.drive.effort.copy(), self.reader.stamp or 0, mode))
            if reached:
                break
        return commands

    def request(self, event: Event) -> str:
        """Float, hold, stop, reset or cancel. Returns what happens, one line; raises Refusal."""
        transition = self.supervisor.handle(event)
        self._perform(transition.action)
        return f"{self.supervisor.text}: {transition.action.value}"

    def on_trajectory(self, request: TrajectoryRequest) -> str:
        """Start a trajectory, or cancel with an empty one. Raises Refusal; the arm then goes on as it was."""
        if not request.points:
            return self.request(Event.CANCEL)
        self._require_tracking("joint_trajectory")
        self.drive.prepare(self.supervisor.allowed(Event.TRAJECTORY).action)
        self.drive.reference.follow(
            request,
            self.reader.stamp or 0,
            self.settings["limits.start_tolerance"],
            self.settings["splice_time"],
            self.settings.braking_acceleration,
        )
        self._followed()
        count = len(request.points)
        return f"tracking: {count} point{'' if count == 1 else 's'}"

    def on_reference(self, point: Point, now: int) -> None:
        """A streamed set point in controller order. Raises Refusal; the arm then goes on as it was."""
        self._require_tracking("reference")
        self.drive.prepare(self.supervisor.allowed(Event.TRAJECTORY).action)
        self.drive.reference.stream(point, self.reader.stamp or 0, now, self.settings["limits.start_tolerance"])
        self._followed()

    def on_wrench(self, wrench: Array, frame: str, now: int) -> None:
        """What the environment exerts on the tip body: (6,) force N then moment Nm, about the origin of `frame` and in
        its axes; an empty name is the tip. Raises Refusal, also where the joints could not carry it."""
        bad = ~(np.abs(wrench) <= LARGEST)
        if bad.any():
            raise Refusal(f"external_wrench: a value is {wrench[bad][0]:g}, expected a number of at most {LARGEST:g}")
        rotation, translation = frame_in_tip(self.robot, frame, "external_wrench")
        force, moment = rotation @ wrench[:3], rotation @ wrench[3:]
        at_tip = np.concatenate([force, moment + np.cross(translation, force)])
        torque = np.abs(self._wrench_torque(at_tip))
        for name, needed, limit in zip(self.robot.joint_names, torque, self.settings.effort_limit, strict=True):
            if needed > limit:
                raise Refusal(
                    f"external_wrench: takes {needed:.4g} Nm in {name!r}, above its limit of {limit:.4g} Nm; send what "
                    "the arm can carry"
                )
        self.drive.take_wrench(at_tip, now)

    def _wrench_torque(self, wrench: Array) -> Array:
        """−J_bᵀ w where the arm is: (n,) Nm."""
        q, still, torque = self.reader.position, np.zeros(self.robot.n), self.arm.dynamics.torque
        return torque(q, still, still, wrench) - torque(q, still, still)

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
        """Change live parameters, all or none. Raises ParameterError. The gains are checked again over all poses only
        where the change concerns them: that takes about a period."""
        for name in changes:
            if name in BY_NAME and not BY_NAME[name].live:
                raise ParameterError(f"parameter {name!r} is read at configure: deactivate and clean up first")
        settings = build({**self.settings.values, **changes}, self.robot)
        settings = checks.completed(settings, self._survey)
        if not changes.keys().isdisjoint(checks.CHECKED):
            warnings = checks.check(settings, self._survey, self.robot.joint_names)
            self.messages += [("warning", line) for line in warnings]
        if self.mode is not Mode.IDLE:
            self._require_support(settings)
        self.settings = settings
        self.drive.take(settings)
        self.monitor.take(settings)

    def _require_support(self, settings: Settings) -> None:
        """ParameterError where new settings take away the support of the arm where it is: a payload or an effort limit
        with which gravity alone is above the limit, by more than it is now."""
        q, dynamics = self.reader.position, self.arm.dynamics
        before = np.abs(dynamics.gravity_torque(q)) - self.settings.effort_limit
        self.arm.set_payload(settings.payload)
        gravity = np.abs(dynamics.gravity_torque(q))
        self.arm.set_payload(self.settings.payload)
        for name, needed, limit, lacking in zip(
            self.robot.joint_names, gravity, settings.effort_limit, before, strict=True
        ):
            if needed - limit > max(lacking, 0.0):
                raise ParameterError(
                    f"gravity and payload would take {needed:.4g} Nm in {name!r} where the arm is, above its effort "
                    f"limit of {limit:.4g} Nm"
                )

    def on_watchdog(self, status: str, stamp: int, command: Array | None, now: int) -> None:
        """What the watchdog announces, and its last command (n,) in controller order; see `turn.py`."""
        self.turn.hear(status, stamp, command, now)

    def fault(self, line: str) -> None:
        """Enter the fault mode with its one line, or stay in it."""
        if self.mode in (Mode.IDLE, Mode.FAULT):
            return
        transition = self.supervisor.handle(Event.FAULT, line)
        self.messages.append(("error", f"fault: {line}"))
        self._perform(transition.action)

    # The cycle

    def _cycle(self, stamp: int, arrival: int) -> Command:
        drive = self.drive
        self._advance(stamp)
        drive.look()
        self._watch(drive.error[0])
        command = self._finished(drive.command(stamp, arrival, self.mode is Mode.TRACKING))
        self._unfinished = stamp
        return command

    def finish(self) -> None:
        """What a cycle does once its command has left, and what nothing in that command waits for: the record, the
        estimated external torque, the end of a release. Left out, it is done at the beginning of the next cycle."""
        stamp, self._unfinished = self._unfinished, None
        if stamp is None:
            return
        q, qd, drive = self.reader.position, self.reader.velocity, self.drive
        self.history.add(stamp, self.mode, q, qd, drive.reference.state, drive.effort)
        self.observer.update(stamp, q, qd, self._total_torque())
        self._watch_contact()
        if drive.released():
            self._happen(Event.RELEASED)

    def _finished(self, finite: bool) -> Command:
        """The command as it leaves."""
        gate = self.drive.gate
        self.monitor.count_limits(gate.clamped, gate.slowed)
        if not finite:
            self.fault("the computed torque is not finite; the last command is kept; check gains and payload")
        self._command.stamp = self.reader.stamp or 0
        self._command.mode = self.supervisor.text
        return self._command

    def _advance(self, stamp: int) -> None:
        settings, reference = self.settings, self.drive.reference
        try:
            reference.advance(
                stamp, settings["limits.start_tolerance"], settings["splice_time"], settings.braking_acceleration
            )
        except Refusal as refusal:
            self.messages.append(("error", str(refusal)))
        if self.mode is Mode.TRACKING:
            if reference.stale(stamp):
                self._happen(Event.STALE, "reference timed out: braking into a hold")
            elif not reference.moving:
                self._happen(Event.DONE)

    def _watch(self, error: Array) -> None:
        monitor, in_law = self.monitor, self.drive.way is Way.LAW
        line = monitor.speed_fault(self.reader.velocity)
        delayed = monitor.delayed(self.timekeeper.age)
        self.drive.delayed = delayed is not None
        line = line or monitor.slow_states(self.timekeeper.rate, self.timekeeper.intervals) or delayed
        if line is None and in_law:
            line = monitor.tracking_fault(error)
            self.messages += [("warning", text) for text in monitor.tracking_warnings(error)]
        if line is None:
            return
        if self.mode is not Mode.FAULT:
            self.fault(line)
        elif in_law:  # held, and moving again: brake again
            self._perform(Action.BRAKE_SUPPORTED)

    def _watch_contact(self) -> None:
        action = self.settings["contact.action"]
        if action == "none" or self.mode not in (Mode.HOLD, Mode.TRACKING) or not self.observer.settled:
            return
        line = self.monitor.contact(self.observer.external)
        if line is None:
            return
        if action == "float":
            self._happen(Event.FLOAT, f"{line}: floating")
        elif self.mode is Mode.TRACKING:
            self._happen(Event.CONTACT, f"{line}: holding")

    # Transitions

    def _happen(self, event: Event, line: str = "") -> None:
        """An event that nobody asked for, with its line for a person."""
        if line:
            self.messages.append(("warning", line))
        self._perform(self.supervisor.handle(event).action)

    def _perform(self, action: Action) -> None:
        self.drive.perform(action, self.reader.stamp or 0)
        if action in (Action.BEGIN, Action.BRAKE_ARM):
            self.monitor.restart()
            self.observer.restart()

    def _followed(self) -> None:
        """A motion was taken."""
        self.supervisor.handle(Event.TRAJECTORY)
        self.drive.follow()

    def _pass_time(self, now: int) -> None:
        """The silence of the joint states is counted in the time in which this process ran: of a sleep only as much as
        between two looks, and nothing where the clock went back."""
        gap, self._seen_at = now - self._seen_at, now
        if self._arrival is None or self.mode is Mode.IDLE:
            return
        if gap < 0:
            self._arrival = now
        elif gap > AWAKE:
            self._arrival += gap - AWAKE

    def _is_ours(self, now: int) -> bool:
        """Whether the arm is ours. It is taken back as at an activation, from the last command that the joints saw."""
        mine = self.turn.ours(now)
        if mine and self._waited:
            self._happen(Event.HANDED_BACK, "the arm is ours again: braked, and held where it stops")
            last = self.turn.last_command()
            self.drive.begin(now, self.drive.gate.previous.copy() if last is None else last)
        elif not mine and not self._waited:
            self.messages.append(
                ("warning", "the watchdog has the arm, or may have: nothing is commanded until it says")
            )
        self._waited = not mine
        return mine

    def _accept_new_encoder(self, reason: str) -> None:
        """A position that has jumped and stays there is taken, in a fault."""
        self._jumps = self._jumps + 1 if reason == "position jump" else 0
        last = self.monitor.last_passed_over
        if self._jumps < JUMPED or last is None:
            return
        self._jumps = 0
        self.reader.reset()
        if self.mode is Mode.FAULT:
            self._perform(Action.BRAKE_SUPPORTED)
        self.fault(f"{last.line} and stays there; check the encoder, then ~/reset")

    def _require_tracking(self, topic: str) -> None:
        nodes = self._publishers.get(topic, [])
        if len(nodes) > 1:
            raise Refusal(f"{topic}: refused, {len(nodes)} nodes publish on it: {', '.join(nodes)}; one must stop")
        if self._waited:
            raise Refusal(f"{topic}: refused while the watchdog has the arm")
        if self.blind:
            raise Refusal(f"{topic}: refused while no joint states arrive")
        slow = self.monitor.slow_states(self.timekeeper.rate, self.timekeeper.intervals)
        if slow is not None:
            raise Refusal(f"{topic}: refused, {slow}")

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
                    f"activate: {name!r} moves at {qd[index]:.3g} rad/s, at most {self.settings['enabling.speed']:g} "
                    "is taken; let the arm come to rest"
                )

    def _total_torque(self) -> Array:
        """What acts on the joints, (n,): measured where the parameter says how, else commanded."""
        measured = self.reader.effort
        if self.settings["effort_state"] == "total" and np.isfinite(measured).all():
            return measured
        if self.settings["effort_state"] == "command" and np.isfinite(measured).all():
            return np.asarray(measured + self.drive.share)
        return np.asarray(self.drive.effort + self.drive.share)

    def _blind_line(self, silent: float) -> str:
        last = self.monitor.last_passed_over
        if self.monitor.passed_over_in_a_row and last is not None:
            return (
                f"no usable joint state for {silent * 1e3:.0f} ms: {self.monitor.passed_over_in_a_row} passed over, "
                f"the last because of {last.line}"
            )
        return (
            f"no joint state for {silent * 1e3:.0f} ms; only gravity is supported; check the broadcaster, then ~/reset"
        )

    def _say_once(self, level: str, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self.messages.append((level, line))

    def take_messages(self) -> list[tuple[str, str]]:
        """The lines for a person since the last call."""
        taken, self.messages = self.messages, []
        return taken
