"""The watchdog without ROS: carries the arm when the controller's commands end, driven by explicit time.

    braking    τ = g(q) - h(q) - (D + k M(q)) q̇    D = diag(braking.damping)
    blind      τ = g(q) - h(q)                     at the last position: a stale velocity would be a constant push
    at rest    τ = 0                               where the hardware carries all gravity

h is the robot's own share of gravity. k M(q) slows every joint down as exp(-k t), however they are coupled, and costs
no more than gravity: RNEA(q, 0, -k q̇) = g - k M q̇. The rate limit R lets a joint of the largest inertia M follow from
the speed v = SPEED without overshoot where k² M v ≤ 2 R; that is k. D is for light joints, which can stop faster.

`now` is ns of a clock that only goes forward; `stamp` and `arrival` are ns of the clock that stamps the states. What
may move the arm returns the command to publish, (n,) Nm, or None; the array is written again by the next call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnea_ros.control import checks
from rnea_ros.control.frames import frame_in_tip
from rnea_ros.control.gate import Gate
from rnea_ros.control.handover import GOODBYE, LEFT, WAITING, Status, patience
from rnea_ros.control.joint_states import JUMP_FACTOR, JointStateReader, Values, speed_limits
from rnea_ros.control.laws import Arm
from rnea_ros.control.settings import build
from rnea_ros.control.timekeeping import Time, Timekeeper
from rnea_ros.control.watchdog_parameters import OWN, SHARED
from rnea_ros.model.robot import RobotModel

Array = NDArray[np.float64]

TICK = 4_000_000  # ns, how often `tick` is to be called
CONTRADICTED = 3  # commands of the controller in a row to which an active watchdog gives way at once
SPEED = 1.0  # rad/s, see above
DAMPING = 0.1  # of what latency and effective inertia allow, where the parameter is empty
AT_REST = 0.02  # rad/s
BRAKING_TIME = 1_000_000_000  # ns: after this, hardware that carries all gravity is commanded zero anyway
ANNOUNCE_ACTIVE, ANNOUNCE_PASSIVE = 20_000_000, 100_000_000  # ns between two announcements of the status
LONGEST_RAMP = 1000  # commands


@dataclass(frozen=True)
class StateMessage:
    """A joint state as it came: its stamp, its arrival, and `seen`, the same moment on the clock of `now`."""

    names: Sequence[str]
    position: Values
    velocity: Values
    effort: Values
    stamp: int
    arrival: int
    seen: int


@dataclass(frozen=True)
class Recent:
    """What was seen while watching; looked at only when the arm is taken over."""

    states: Callable[[], Iterable[StateMessage]]  # the last few, oldest first
    command: Callable[[], Array | None]  # the last one on the topic, whoever sent it


def braking_rate(inertia: Array, effort_rate: Array) -> float:
    """k in 1/s, from the largest inertia of each joint (n,) kg m² and its rate limit (n,) Nm/s; see above."""
    return float(np.sqrt((2.0 * effort_rate / (inertia * SPEED)).min()))


class Watchdog:
    """Everything that decides. Raises ParameterError where `values` cannot be used with `robot`.

    Messages for a person are collected in `messages` as (level, line), level one of "info", "warning", "error".
    """

    def __init__(self, robot: RobotModel, values: Mapping[str, Any], recent: Recent) -> None:
        self.robot = robot
        self._recent = recent
        own = {item.name: item.coerced(values.get(item.name, item.default)) for item in OWN}
        shared = {name: values[name] for name in SHARED if name in values}
        self.settings = settings = build({**shared, "braking.damping": own["braking.damping"]}, robot)
        self.arm = Arm(robot, settings, backend="python")  # fast enough, and Numba stays out of this process
        found = checks.survey(self.arm.dynamics)
        given = settings.braking_damping
        if given is None:
            given = DAMPING / settings.latency * found.effective_inertia.min(axis=0)
        self.damping = given  # D, (n,) Nms/rad
        self.braking_rate = braking_rate(found.inertia, settings.effort_rate)  # k, 1/s
        self.messages = [
            ("warning", line)
            for line in checks.check_damping(
                "braking.damping", given, found.effective_inertia, settings.latency, robot.joint_names
            )
        ]
        self.detection = patience(own["detection_time"], settings.period)
        self.handback = int(own["handback_heartbeats"])
        self.reader = JointStateReader(
            robot.joint_names, robot.continuous, jump_limits=JUMP_FACTOR * speed_limits(robot)
        )
        self.timekeeper = Timekeeper(settings["max_state_age"], settings.period)
        self.gate = Gate(settings.effort_limit, settings.effort_rate, settings.period)
        self.status = Status.STANDBY
        self.leaving = False  # to end as soon as nobody needs this process
        self.announce = True  # the status is to be published; who does so clears this
        self.take_overs = 0
        self.detected_after = 0.0  # s from the last heartbeat to the last take-over for want of one
        self.last_mode = ""  # of the controller
        self.blind = False
        self.passed_over: Counter[str] = Counter()  # joint states, by reason
        self.turn_command: Array | None = None  # (n,) the last command of the last turn
        n = robot.n
        self._command, self._zero = np.zeros(n), np.zeros(n)
        self._support, self._share = self._zero, self._zero
        self._knows_position = False
        self._ran_at: int | None = None
        self._silent = 0  # ns without a command of the controller, in which this process ran
        self._stateless = 0  # ns without a usable joint state, likewise
        self._announced_at = self._heartbeat_at = self._commanded_at = self._began_at = 0
        self._fresh = self._contradicted = self._fresh_stamp = 0
        self._rested = self._blind_said = False
        self._gone = False  # it said goodbye, and was not heard since
        self._last_passed_over = ""
        self._warm_up()

    @property
    def finished(self) -> bool:
        """Whether the process may end."""
        return self.status is Status.RELEASED or (self.leaving and self.status is Status.STANDBY)

    # What comes in

    def on_heartbeat(self, stamp: int, says: str, now: int) -> Array | None:
        """A heartbeat: the stamp of the state behind it, and the controller's mode or a word of `handover.py`."""
        self._run(now)
        if says == WAITING:
            self.announce = True  # the answer
        commanding = says not in (WAITING, GOODBYE, LEFT)
        if self.status is Status.ACTIVE:
            if says == WAITING or commanding:
                self._count(stamp, commanding, now)
            return None
        if self.status is Status.RELEASED:
            return None
        if says == GOODBYE:
            self._gone = True
            return self._take_over("the controller said goodbye", now)
        if says == LEFT:
            self._become(Status.STANDBY)
        elif commanding:
            self._silent = 0
            self._gone = False
            self._heartbeat_at, self.last_mode = now, says
            self._become(Status.WATCHING)
        return None

    def tick(self, now: int) -> Array | None:
        """Time has passed."""
        self._run(now)
        if now - self._announced_at >= (ANNOUNCE_ACTIVE if self.status is Status.ACTIVE else ANNOUNCE_PASSIVE):
            self._announced_at = now
            self.announce = True
        if self.status is Status.WATCHING and self._silent >= self.detection:
            self.detected_after = (now - self._heartbeat_at) * 1e-9
            return self._take_over(f"no command of the controller for {self.detected_after * 1e3:.1f} ms", now)
        if self.status is Status.ACTIVE and self._stateless >= self.settings.state_timeout * 1e9:
            return self._support_blindly(now)
        return None

    def on_state(self, message: StateMessage) -> Array | None:
        """A joint state; while watching it suffices that `recent` knows it."""
        self._run(message.seen)
        if self.status is not Status.ACTIVE or not self._read(message):
            return None
        self._stateless, self.blind, self._blind_said = 0, False, False
        return self._brake(message.seen)

    def on_payload(self, mass: float, com: Array, inertia: Array, frame: str = "") -> None:
        """What the controller was told that the tip carries: kg, m, kg m² about com, in `frame`. Raises Refusal."""
        rotation, translation = frame_in_tip(self.robot, frame, "payload")
        load = (float(mass), translation + rotation @ com, rotation @ inertia @ rotation.T) if mass else None
        if load is not None:
            self.robot.with_payload(load[0], load[1], load[2] if load[2].any() else None)
        self.arm.set_payload(load)

    # What people ask for

    def interrupt(self) -> None:
        """SIGINT: end as soon as nobody needs this process."""
        self.leaving = True
        if not self.finished:
            line = (
                f"interrupted while {self.status.value}: stays as long as it may be needed; ~/release or SIGTERM end it"
            )
            self.messages.append(("warning", line))

    def release(self, now: int) -> list[Array]:
        """Let go of the arm. Returns the last commands, to be sent one period apart: the support, or a ramp to zero."""
        if self.status is not Status.ACTIVE:
            return []
        commands = self._last_commands(now)
        if self.arm.carries_all:
            self.messages.append(("info", "released: the hardware carries the arm"))
        else:
            line = (
                "released: nothing carries the arm but the last torque, if its hardware holds that; unless the brakes "
                "are on, the arm will fall"
            )
            self.messages.append(("warning", line))
        self._become(Status.STANDBY)
        return commands

    def end(self, now: int) -> list[Array]:
        """SIGTERM: `release`, and be finished."""
        if self.status is Status.WATCHING:
            self.messages.append(("warning", "ends while the controller commands: nobody watches it from now on"))
        commands = self.release(now)
        self._become(Status.RELEASED)
        return commands

    def _warm_up(self) -> None:
        """Make every kernel now: the first take-over has no time for it."""
        q = np.clip(self._zero, self.robot.lower, self.robot.upper)
        self.arm.support(q, self.arm.share(q))
        torque = self.arm.dynamics.torque(q, self._zero, self._zero)
        self.gate.bounded(torque, self._share, torque, np.empty_like(torque))

    # Whose arm it is

    def _run(self, now: int) -> None:
        """Count the time in which this process ran. One that slept while active may have been replaced."""
        gap = 0 if self._ran_at is None else max(now - self._ran_at, 0)
        self._ran_at = now
        ran = min(gap, 2 * TICK)
        self._silent += ran
        self._stateless += ran
        if self.status is Status.ACTIVE and gap > self.detection and not self._gone:
            self.messages.append(
                ("warning", f"slept for {gap * 1e-6:.0f} ms while active: looks for the controller first")
            )
            self._silent = 0
            self._become(Status.WATCHING)

    def _count(self, stamp: int, commanding: bool, now: int) -> None:
        """While active: after enough fresh heartbeats the controller has the arm again."""
        self._gone = False
        newest = self.reader.stamp
        fresh = stamp > self._fresh_stamp
        if newest is not None:
            fresh = fresh and newest - stamp < self.settings["max_state_age"] * 1e9
        if not fresh or now - self._heartbeat_at > self.detection:
            self._fresh = self._contradicted = 0
        self._heartbeat_at = now
        if not fresh:
            return
        self._fresh_stamp = stamp
        self._fresh += 1
        self._contradicted = self._contradicted + 1 if commanding else 0
        if self._fresh >= self.handback or self._contradicted >= CONTRADICTED:
            turn = (now - self._began_at) * 1e-9
            self.messages.append(("warning", f"the controller is back and has the arm again, after {turn:.3g} s"))
            self._silent = 0
            self._become(Status.WATCHING)

    def _become(self, status: Status) -> None:
        if status is self.status:
            return
        if self.status is Status.ACTIVE:
            self.turn_command = self.gate.previous.copy()
        self.status = status
        self.announce = True

    def _take_over(self, why: str, now: int) -> Array | None:
        self.take_overs += 1
        self._become(Status.ACTIVE)
        self._began_at = now
        self._rested = self._blind_said = False
        self._fresh = self._contradicted = 0
        self.reader.reset()
        self.timekeeper.restart()
        self._stateless = round(self.settings.state_timeout * 1e9)
        for message in self._recent.states():
            if self._read(message):
                self._stateless = max(now - message.seen, 0)
        self._fresh_stamp = self.reader.stamp or 0
        self._start_gate(now)
        self.messages.append(
            ("error", f"{why}; its mode was {self.last_mode or 'unknown'}. The watchdog carries the arm")
        )
        self.blind = self._stateless >= self.settings.state_timeout * 1e9
        return self._support_blindly(now) if self.blind else self._brake(now)

    # The command

    def _read(self, message: StateMessage) -> bool:
        stamp = message.stamp or message.arrival
        verdict, passed = self.timekeeper.judge(stamp, message.arrival)
        if verdict is Time.JUMPED:
            self.reader.reset()
        if passed is None:
            passed = self.reader.read(message.names, message.position, message.velocity, message.effort, stamp)
        if passed is not None:
            self.passed_over[passed.reason] += 1
            if not passed.foreign:
                self._last_passed_over = f"; last passed over: {passed.line}"
            return False
        self.timekeeper.accept(stamp, message.arrival)
        self._knows_position = True
        return True

    def _start_gate(self, now: int) -> None:
        """The rate limit goes on from the last command that the joints saw."""
        last = self._recent.command()
        if last is not None and last.shape == (self.robot.n,) and np.isfinite(last).all():
            self.gate.restart(last)
        else:
            self._measure()
            self.gate.restart(self.gate.bounded(self._support, self._share, self._support, self._command))
        self._commanded_at = now - round(self.settings.period * 1e9)

    def _measure(self) -> None:
        if self._knows_position:
            self._share = self.arm.share(self.reader.position)
            self._support = self.arm.support(self.reader.position, self._share)

    def _brake(self, now: int) -> Array | None:
        self._measure()
        velocity = self.reader.velocity
        if self.arm.carries_all and not self._rested:
            self._rested = bool(np.abs(velocity).max() < AT_REST) or now - self._began_at > BRAKING_TIME
        if self.arm.carries_all and self._rested:
            return self._gated(self._zero, now)
        braking = self.arm.dynamics.torque(self.reader.position, self._zero, -self.braking_rate * velocity)
        return self._gated(braking - self._share - self.damping * velocity, now)

    def _support_blindly(self, now: int) -> Array | None:
        self.blind = True
        if self._stateless >= self.settings["blind_fault"] * 1e9 and not self._blind_said:
            self._blind_said = True
            rest = "gravity is supported at the last position, undamped"
            if not self._knows_position:
                rest = "its position was never seen, the joints keep the last torque"
            line = (
                f"blind while carrying the arm, no usable joint state: {rest}; the arm may drift. Use the brakes, then "
                f"check the broadcaster{self._last_passed_over}"
            )
            self.messages.append(("error", line))
        if not self._knows_position:
            return None
        self._measure()
        return self._gated(self._support, now)

    def _gated(self, desired: Array, now: int) -> Array:
        period = (now - self._commanded_at) * 1e-9
        self._commanded_at = now
        if not self.gate.apply(self._support, self._share, desired, period, self._command):
            self.messages.append(
                ("error", "the computed torque is not finite; the last command is kept; check the payload")
            )
        return self._command

    def _last_commands(self, now: int) -> list[Array]:
        """The way out of a turn, without damping, which would be a constant push."""
        if not self._knows_position:
            return []
        period = round(self.settings.period * 1e9)
        commands: list[Array] = []
        while len(commands) < LONGEST_RAMP:
            now += period
            self._measure()
            commands.append(self._gated(self._support, now).copy())
            if not self.gate.slowed.any():
                break
        return commands
