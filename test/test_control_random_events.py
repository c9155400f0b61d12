"""Any sequence of events, good and bad, in any order: the promises that hold whatever happens."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from virtual_arm import MILLISECOND, START, URDF

from rnea_ros.control.controller import Command, Controller
from rnea_ros.control.errors import ParameterError, Refusal
from rnea_ros.control.supervisor import Event, Mode
from rnea_ros.control.trajectory import Point, TrajectoryRequest
from rnea_ros.model.urdf import load_urdf

ROBOT = load_urdf(URDF / "planar_2r.urdf")
NAMES = list(ROBOT.joint_names)
VALUES: dict[str, Any] = {
    "feedforward_pd.kp": [75.0, 70.0],
    "feedforward_pd.kd": [10.0, 3.5],
    "computed_torque.kp": [100.0],
    "computed_torque.kd": [20.0],
    "history.seconds": 0.1,
}
wild = st.floats(allow_nan=True, allow_infinity=True)
mild = st.floats(-3.0, 3.0)
values = st.lists(st.one_of(mild, wild), max_size=3)


class Events(RuleBasedStateMachine):
    """No command that is not finite, over the effort limit or over the effort rate, ever; never silent for longer than
    the blind time while responsible; stop is always granted."""

    @initialize(
        source=st.sampled_from(["self", "hardware", "residual"]),
        law=st.sampled_from(["feedforward_pd", "computed_torque"]),
    )
    def begin(self, source: str, law: str) -> None:
        gravity = {"hardware_gravity": [0.0, 0.0, -8.0]} if source == "residual" else {}
        self.core = Controller(ROBOT, {**VALUES, "gravity_source": source, "law": law, **gravity})
        self.now = START
        self.previous: np.ndarray | None = None
        self.limits = self.core.settings.effort_limit.copy()
        self.rates = self.core.settings.effort_rate.copy()
        self.answered = self.now
        self.q, self.qd = np.array([0.3, 0.2]), np.zeros(2)
        self.good_states(10)
        with contextlib.suppress(Refusal):
            self.check(self.core.activate(self.now))

    def check(self, command: Command | None) -> None:
        if command is None:
            return
        self.answered = self.now
        if command.effort is None:
            self.previous = None  # the watchdog's turn: it goes on from the watchdog's command
            return
        effort = command.effort.copy()
        assert np.isfinite(effort).all()
        total = effort + self.core.drive.share
        if self.core.settings["gravity_source"] == "self":
            assert (np.abs(total) <= self.limits + 1e-9).all()
        if self.previous is not None:
            assert (np.abs(effort - self.previous) <= self.rates * 1e-3 + 1e-9).all()
        self.previous = effort

    def good_states(self, count: int) -> None:
        for _ in range(count):
            self.now += MILLISECOND
            self.q = self.q + 1e-3 * self.qd
            self.check(self.core.on_state(NAMES, self.q, self.qd, [], self.now, self.now))
            if (self.now // MILLISECOND) % 5 == 0:
                self.check(self.core.tick(self.now))

    @rule(count=st.integers(1, 60), speed=st.tuples(st.floats(-2.0, 2.0), st.floats(-2.0, 2.0)))
    def states_arrive(self, count: int, speed: tuple[float, float]) -> None:
        self.qd = np.array(speed)
        self.good_states(count)

    @rule(position=values, velocity=values, offset=st.integers(-2000, 2000), names=st.permutations([*NAMES, "x"]))
    def any_state_arrives(self, position: list, velocity: list, offset: int, names: list) -> None:
        self.now += MILLISECOND
        stamp = max(self.now + offset * MILLISECOND, 0)
        self.check(self.core.on_state(names[: len(position)], position, velocity, [], stamp, self.now))

    @rule(milliseconds=st.integers(1, 400))
    def nothing_arrives(self, milliseconds: int) -> None:
        for _ in range(milliseconds):
            self.now += MILLISECOND
            if (self.now // MILLISECOND) % 5 == 0:
                self.check(self.core.tick(self.now))

    @rule(jump=st.integers(-500_000, 500_000))
    def clock_jumps(self, jump: int) -> None:
        self.now = max(self.now + jump * MILLISECOND, MILLISECOND)
        self.answered = self.now

    @rule(event=st.sampled_from([Event.FLOAT, Event.HOLD, Event.RESET, Event.CANCEL]))
    def somebody_asks(self, event: Event) -> None:
        with contextlib.suppress(Refusal):
            self.core.request(event)

    @rule()
    def stop_works(self) -> None:
        self.core.request(Event.STOP)
        assert self.core.mode in (Mode.HOLD, Mode.FAULT, Mode.IDLE)
        assert not self.core.drive.reference.streaming or self.core.mode is not Mode.HOLD

    @rule(points=st.lists(st.tuples(st.floats(-0.1, 3.0), values, values), max_size=3), stamp=st.integers(-500, 500))
    def a_trajectory_comes(self, points: list, stamp: int) -> None:
        request = TrajectoryRequest(
            NAMES, [Point(*point) for point in points], (self.now + stamp * MILLISECOND) * (stamp != 0)
        )
        with contextlib.suppress(Refusal):
            self.core.on_trajectory(request)

    @rule(reach=st.tuples(mild, mild), seconds=st.floats(0.05, 3.0), velocity=st.booleans())
    def a_good_trajectory_comes(self, reach: tuple[float, float], seconds: float, velocity: bool) -> None:
        point = Point(seconds, reach, (0.0, 0.0) if velocity else ())
        with contextlib.suppress(Refusal):
            self.core.on_trajectory(TrajectoryRequest(NAMES, [point]))

    @rule(offset=st.tuples(st.floats(-0.2, 0.2), st.floats(-0.2, 0.2)), velocity=values, bad=st.booleans())
    def a_reference_is_streamed(self, offset: tuple[float, float], velocity: list, bad: bool) -> None:
        position = self.core.drive.reference.state[0] + np.array(offset)
        with contextlib.suppress(Refusal):
            self.core.on_reference(Point(0.0, [np.nan, 0.0] if bad else position.tolist(), velocity), self.now)

    @rule(wrench=st.lists(st.one_of(st.floats(-1e3, 1e3), wild), min_size=6, max_size=6))
    def a_wrench_is_measured(self, wrench: list) -> None:
        with contextlib.suppress(Refusal):
            self.core.on_wrench(np.array(wrench), "", self.now)

    @rule(mass=st.one_of(st.floats(0.0, 5.0), wild))
    def a_payload_is_told(self, mass: float) -> None:
        with contextlib.suppress(Refusal):
            self.core.on_payload(mass, np.array([0.0, 0.0, 0.1]), np.zeros((3, 3)), "")

    @rule(
        name=st.sampled_from(
            ["feedforward_pd.kp", "feedforward_pd.kd", "gravity_compensation.damping", "law", "nonsense"]
        ),
        value=st.one_of(st.floats(0.0, 200.0), wild),
    )
    def a_parameter_is_set(self, name: str, value: float) -> None:
        with contextlib.suppress(ParameterError):
            self.core.set_parameters({name: "computed_torque" if name == "law" else [value]})

    @rule(status=st.sampled_from(["active", "watching", "standby", "nonsense"]), known=st.booleans())
    def the_watchdog_speaks(self, status: str, known: bool) -> None:
        last = np.array([1.0, -1.0]) if known else None
        self.core.on_watchdog(status, self.now, last, self.now)
        if status == "active":
            self.previous = None

    @rule()
    @precondition(lambda self: self.core.mode is not Mode.IDLE)
    def it_is_deactivated_and_activated(self) -> None:
        for command in self.core.deactivate(self.now):
            self.check(command)
        assert self.core.mode is Mode.IDLE
        assert (
            self.core.on_state(NAMES, self.q, np.zeros(2), [], self.now + MILLISECOND, self.now + MILLISECOND) is None
        )
        self.now += MILLISECOND
        self.previous = None
        with contextlib.suppress(Refusal):
            self.check(self.core.activate(self.now))

    @invariant()
    def never_silent_while_responsible(self) -> None:
        if not hasattr(self, "core") or self.core.mode is Mode.IDLE:
            self.answered = getattr(self, "now", 0)
            return
        assert self.now - self.answered <= 20 * MILLISECOND

    @invariant()
    def lines_are_lines(self) -> None:
        if hasattr(self, "core"):
            assert all("\n" not in line for _, line in self.core.take_messages())


Events.TestCase.settings = settings(
    max_examples=100, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
test_random_events = Events.TestCase
