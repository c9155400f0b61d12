"""The watchdog in virtual time, against MuJoCo and the controller."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("mujoco", reason="needs MuJoCo")

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from watched_arm import CONTROLLER, HOME, MILLISECOND, START, URDF, WATCHDOG, WatchedArm

from rnea_ros.control.errors import ParameterError
from rnea_ros.control.handover import GOODBYE, LEFT, WAITING, Status
from rnea_ros.control.supervisor import Event
from rnea_ros.control.trajectory import Point, TrajectoryRequest
from rnea_ros.control.watchdog import Recent, StateMessage, Watchdog
from rnea_ros.control.watchdog_parameters import page
from rnea_ros.dynamics.inverse_dynamics import InverseDynamics
from rnea_ros.model.urdf import load_urdf

SETTLED = 0.3  # s


def begun(mode: str = "hold", name: str = "panda", joint: int | None = None, **parameters: Any) -> WatchedArm:
    """An arm under the controller's command in the given mode, for a while; tracking moves all joints or one."""
    arm = WatchedArm(name, **parameters)
    arm.run(SETTLED)
    assert arm.controller is not None and arm.watchdog.status is Status.WATCHING, arm.lines
    if mode == "float":
        arm.controller.request(Event.FLOAT)
        arm.run(0.1)
    elif mode == "tracking":
        goal = arm.arm.position.copy()
        moved = np.where(goal < 0.5 * (arm.robot.lower + arm.robot.upper), 0.6, -0.6)
        goal += moved if joint is None else moved * (np.arange(arm.robot.n) == joint)
        points = [Point(1.1, list(goal), [0.0] * arm.robot.n, [0.0] * arm.robot.n)]
        arm.controller.on_trajectory(TrajectoryRequest(list(arm.robot.joint_names), points, 0))
        arm.run(0.5)
        assert np.abs(arm.arm.velocity).max() > 0.9
    return arm


def bound_on_overrun(arm: WatchedArm, detection: float) -> float:
    """rad: speed × (detection time + effective inertia / braking damping + the time in which the rate limit lets half
    of the braking torque come). Effective inertia / braking damping is at most 1 / braking rate."""
    core = arm.watchdog
    speed, rate = np.abs(arm.arm.velocity).max(), core.braking_rate
    torque = np.abs(rate * core.arm.dynamics.mass_matrix(arm.arm.position) @ arm.arm.velocity)
    return float(speed * (detection + 1.0 / rate + 0.5 * (torque / core.settings.effort_rate).max()))


@pytest.mark.parametrize("end", ["kill", "freeze", "goodbye"])
@pytest.mark.parametrize("mode", ["hold", "float"])
def test_f03_an_arm_whose_controller_ends_is_carried(mode: str, end: str) -> None:
    arm = begun(mode)
    place, died = arm.arm.position.copy(), arm.now
    end_controller(arm, end)
    positions = arm.run(1.0)
    assert arm.senders(died + 100 * MILLISECOND) == {WATCHDOG}
    detected = (arm.take_overs[0] - died) * 1e-9
    assert detected <= (0.004 if end == "goodbye" else arm.watchdog.detection * 1e-9 + 0.006)
    assert np.abs(positions - place).max() < 1e-3
    assert arm.largest_excess() < 1e-9


@pytest.mark.parametrize("joint", [0, 1, 3, 5, 6])
def test_f03_a_moving_joint_whose_controller_ends_is_braked(joint: int) -> None:
    arm = begun("tracking", joint=joint)
    place, bound = arm.arm.position.copy(), bound_on_overrun(arm, arm.watchdog.detection * 1e-9 + 0.004)
    arm.kill_controller()
    positions = arm.run(1.5)
    overrun = np.abs(positions - place).max()
    assert overrun <= bound
    assert np.abs(arm.arm.velocity).max() < 0.01
    assert arm.largest_excess() < 1e-9


@pytest.mark.parametrize("end", ["kill", "freeze", "goodbye"])
def test_f03_a_moving_arm_whose_controller_ends_is_braked(end: str) -> None:
    """All joints at once, at 1 rad/s each. Until the take-over the last torque and Coriolis forces act on light joints,
    so the bound begins there; and joints at their rate limit push the others: hence the factor."""
    arm = begun("tracking")
    place = arm.arm.position.copy()
    end_controller(arm, end)
    while not arm.take_overs:
        arm.step()
    assert np.abs(arm.arm.position - place).max() < 0.06
    place, bound = arm.arm.position.copy(), bound_on_overrun(arm, 0.002)
    positions = arm.run(1.5)
    assert np.abs(positions - place).max() <= 1.5 * bound
    assert np.abs(arm.arm.velocity).max() < 0.01
    assert arm.largest_excess() < 1e-9


def end_controller(arm: WatchedArm, how: str) -> None:
    if how == "kill":
        arm.kill_controller()
    elif how == "freeze":
        arm.controller_runs = False
    else:
        arm.exit_controller()


def test_f34_the_end_is_gravity_and_damping_where_nothing_else_carries_the_arm() -> None:
    arm = begun("tracking")
    arm.kill_controller()
    arm.run(0.2)
    q, qd = arm.arm.position, arm.arm.velocity
    gravity = arm.watchdog.arm.dynamics.gravity_torque(q)
    core = arm.watchdog
    braking = core.braking_rate * core.arm.dynamics.mass_matrix(q) @ qd + core.damping * qd
    np.testing.assert_allclose(arm.sent[-1][2], gravity - braking, atol=0.5)
    arm.run(1.5)
    np.testing.assert_allclose(arm.sent[-1][2], arm.watchdog.arm.dynamics.gravity_torque(arm.arm.position), atol=0.5)


def test_f34_the_end_is_zero_where_the_hardware_carries_gravity() -> None:
    arm = begun("tracking", gravity_source="hardware")
    arm.kill_controller()
    positions = arm.run(2.0)
    assert not arm.sent[-1][2].any()
    assert arm.sent[-1][1] == WATCHDOG  # robots with a receive time-out need it
    assert np.abs(arm.arm.velocity).max() < 0.03
    assert np.abs(positions[-1] - positions[-200]).max() < 5e-3
    assert arm.largest_excess() < 1e-9


def test_a_frozen_controller_that_goes_on_waits_for_the_handback() -> None:
    arm = begun("hold")
    arm.controller_runs = False
    arm.run(0.5)
    woken = arm.now
    arm.controller_runs = True
    positions = arm.run(1.0)
    times = [time for time, who, _ in arm.sent if who == CONTROLLER and time > woken]
    assert times[0] - woken >= 50 * MILLISECOND
    assert arm.longest_overlap() == 0.0
    assert arm.watchdog.status is Status.WATCHING and arm.senders(times[0] + 5 * MILLISECOND) == {CONTROLLER}
    assert np.abs(positions - HOME["panda"]).max() < 1e-3
    # It goes on from the watchdog's last command.
    last = [effort for time, who, effort in arm.sent if who == WATCHDOG][-1]
    first = next(effort for time, who, effort in arm.sent if who == CONTROLLER and time > woken)
    assert (np.abs(first - last) <= arm.watchdog.settings.effort_rate * 1e-3 + 1e-9).all()


def test_a_controller_that_is_started_again_gets_the_arm_back() -> None:
    arm = begun("hold")
    arm.kill_controller()
    arm.run(0.5)
    again = arm.now
    arm.start_controller()
    arm.controller.on_watchdog("active", arm.now, arm.watchdog.gate.previous, arm.now)  # type: ignore[union-attr]
    positions = arm.run(1.0)
    assert arm.senders(arm.now - 500 * MILLISECOND) == {CONTROLLER}
    assert min(time for time, who, _ in arm.sent if who == CONTROLLER and time > again) - again >= 50 * MILLISECOND
    assert arm.longest_overlap() == 0.0
    assert np.abs(positions - HOME["panda"]).max() < 1e-3


@pytest.mark.parametrize("lost", ["status", "heartbeats", "both"])
def test_lost_messages_do_not_end_in_a_fight(lost: str) -> None:
    """Heartbeats that get lost look like a dead controller; nobody fights for longer than a detection time."""
    arm = begun("hold")
    if lost != "status":
        arm.heartbeats_arrive = False
    if lost != "heartbeats":
        arm.status_arrives = False
    positions = arm.run(0.4)
    arm.heartbeats_arrive = arm.status_arrives = True
    positions = np.vstack([positions, arm.run(0.6)])
    assert arm.senders(arm.now - 300 * MILLISECOND) == {CONTROLLER}
    if lost != "both":  # both ways cut is a partition: two live processes cannot know of each other
        assert arm.longest_overlap() <= arm.watchdog.detection * 1e-9
    assert np.abs(positions - HOME["panda"]).max() < 1e-3


def test_a_watchdog_that_slept_while_active_looks_first() -> None:
    arm = begun("hold")
    arm.kill_controller()
    arm.run(0.2)
    arm.watchdog_runs = False
    arm.run(0.1)
    arm.start_controller()
    arm.run(0.3)
    assert arm.senders(arm.now - 50 * MILLISECOND) == {CONTROLLER}
    arm.watchdog_runs = True
    arm.run(0.5)
    assert arm.longest_overlap() == 0.0
    assert arm.senders(arm.now - 300 * MILLISECOND) == {CONTROLLER}
    assert arm.watchdog.status is Status.WATCHING


def test_a_watchdog_that_slept_while_watching_does_not_take_over() -> None:
    arm = begun("hold")
    for pause in (0.01, 0.05, 1.0):
        arm.watchdog_runs = False
        arm.run(pause)
        arm.watchdog_runs = True
        arm.run(0.2)
    assert arm.take_overs == [] and arm.watchdog.status is Status.WATCHING


def test_while_blind_support_stays_at_the_last_position_without_damping() -> None:
    arm = begun("tracking")
    arm.kill_controller()
    arm.states_arrive = False
    arm.run(0.5)
    seen = arm.watchdog.reader.position
    np.testing.assert_allclose(arm.sent[-1][2], arm.watchdog.arm.dynamics.gravity_torque(seen), atol=1e-9)
    assert arm.watchdog.blind and any("blind while carrying the arm" in line for line in arm.lines)
    arm.states_arrive = True
    arm.run(1.5)
    assert not arm.watchdog.blind and np.abs(arm.arm.velocity).max() < 0.02
    assert arm.largest_excess() < 1e-9


def test_a_reader_of_foreign_and_broken_states_counts_them_and_goes_on() -> None:
    arm = begun("hold")
    arm.kill_controller()
    core = arm.watchdog
    arm.run(0.1)
    names = list(arm.robot.joint_names)
    broken: list[tuple[Any, Any, Any, Any]] = [
        (["gripper"], [np.nan], [], []),
        (names, [np.nan] * 7, [0.0] * 7, []),
        (names, [0.0] * 6, [], []),
        (names[:6], [0.0] * 6, [], []),
    ]
    for bad in broken:
        now = arm.now + MILLISECOND // 2
        assert core.on_state(StateMessage(*bad, stamp=now, arrival=now, seen=now)) is None
    assert {"other joints", "position not finite", "short position", "missing joint"} <= set(core.passed_over)
    arm.run(0.1)
    assert not core.blind


def test_nothing_is_done_before_the_first_heartbeat_and_after_a_clean_end_on_hardware() -> None:
    arm = WatchedArm("planar_2r")
    arm.controller = None
    arm.run(1.0)
    assert arm.sent == [] and arm.watchdog.status is Status.STANDBY

    arm = begun("hold", "planar_2r", gravity_source="hardware")
    arm.exit_controller()
    ended = arm.now
    arm.run(1.0)
    assert arm.senders(ended + MILLISECOND) == set() and arm.watchdog.status is Status.STANDBY
    assert arm.take_overs == []


def test_release_warns_where_the_arm_will_fall_and_interrupts_do_not() -> None:
    arm = begun("hold")
    arm.watchdog.interrupt()
    assert not arm.watchdog.finished
    arm.exit_controller()
    arm.run(0.3)
    assert not arm.watchdog.finished and arm.senders(arm.now - 100 * MILLISECOND) == {WATCHDOG}
    commands = arm.watchdog.release(arm.now)
    np.testing.assert_allclose(commands[-1], arm.watchdog.arm.dynamics.gravity_torque(arm.watchdog.reader.position))
    assert arm.watchdog.finished
    assert any("the arm will fall" in line for _, line in arm.watchdog.messages)

    arm = begun("hold", gravity_source="hardware")
    arm.kill_controller()
    arm.run(1.0)
    arm.watchdog.end(arm.now)
    assert arm.watchdog.status is Status.RELEASED
    assert not any("fall" in line for _, line in arm.watchdog.messages)
    assert arm.watchdog.on_heartbeat(arm.now, "hold", arm.now) is None and arm.watchdog.status is Status.RELEASED


def test_a_watchdog_that_ends_first_leaves_the_arm_to_the_controller() -> None:
    arm = begun("hold")
    arm.watchdog.end(arm.now)
    arm.run(0.01)
    arm.watchdog_runs = False
    positions = arm.run(0.3)
    assert arm.senders(arm.now - 200 * MILLISECOND) == {CONTROLLER}
    assert arm.controller is not None and not arm.controller.turn.alive(arm.now)
    assert np.abs(positions - HOME["panda"]).max() < 1e-3


def test_the_payload_of_the_controller_is_carried() -> None:
    arm = begun("hold")
    arm.watchdog.on_payload(1.5, np.array([0.0, 0.0, 0.05]), np.zeros((3, 3)))
    loaded = arm.robot.with_payload(1.5, (0.0, 0.0, 0.05))
    arm.kill_controller()
    arm.run(0.2)
    gravity = InverseDynamics(loaded, backend="python").gravity_torque(arm.watchdog.reader.position)
    core, qd = arm.watchdog, arm.watchdog.reader.velocity
    mass = InverseDynamics(loaded, backend="python").mass_matrix(core.reader.position)
    expected = gravity - core.braking_rate * mass @ qd - core.damping * qd
    np.testing.assert_allclose(arm.sent[-1][2], expected, atol=1e-9)
    arm.watchdog.on_payload(0.0, np.zeros(3), np.zeros((3, 3)))
    assert arm.watchdog.arm.dynamics.payload is None


def test_parameters_are_judged_as_the_controllers() -> None:
    robot = load_urdf(URDF / "panda.urdf")
    recent = Recent(lambda: (), lambda: None)
    with pytest.raises(ParameterError, match="gravity_source"):
        Watchdog(robot, {}, recent)
    with pytest.raises(ParameterError, match=r"braking\.damping.*diverge"):
        Watchdog(robot, {"gravity_source": "self", "braking.damping": (1000.0,)}, recent)
    with pytest.raises(ParameterError, match="detection_time"):
        Watchdog(robot, {"gravity_source": "self", "detection_time": 0.0}, recent)
    slow = Watchdog(robot, {"gravity_source": "self", "rate": 100.0}, recent)
    assert slow.detection == 30 * MILLISECOND  # three periods


def test_heartbeats_that_are_not_fresh_do_not_count() -> None:
    arm = begun("hold", "planar_2r")
    arm.kill_controller()
    arm.run(0.1)
    core = arm.watchdog
    for _ in range(200):  # the same state again and again
        core.on_heartbeat(START + 5 * MILLISECOND, WAITING, arm.now)
    assert core.status is Status.ACTIVE
    core.on_heartbeat(arm.now, GOODBYE, arm.now)
    core.on_heartbeat(arm.now, LEFT, arm.now)
    assert core.status is Status.ACTIVE


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(
            ["kill", "start", "freeze", "go on", "goodbye", "float", "hold", "freeze watchdog", "watchdog goes on",
             "blind", "see", "cut heartbeats", "cut status", "heal", "release", "payload"]
        ),
        st.integers(1, 120),
    ),
    min_size=1,
    max_size=12,
)  # fmt: skip


@given(events=EVENTS, source=st.sampled_from(["self", "hardware", "residual"]))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_happens_commands_stay_within_their_limits(events: list[tuple[str, int]], source: str) -> None:
    """Finite and within the effort limits (checked at every command); within the rate limit; not two that command for
    long, unless their messages were cut."""
    arm = WatchedArm("planar_2r", gravity_source=source)
    partition = False
    for event, duration in events:
        happen(arm, event)
        partition = partition or not (arm.heartbeats_arrive and arm.status_arrives)
        arm.run(duration * 1e-3)
    assert arm.largest_excess() < 1e-9
    if not partition:
        assert arm.longest_overlap() <= arm.watchdog.detection * 1e-9


def happen(arm: WatchedArm, event: str) -> None:
    controller, watchdog = arm.controller, arm.watchdog
    if event == "kill":
        arm.kill_controller()
    elif event == "start" and controller is None:
        arm.start_controller()
    elif event == "freeze":
        arm.controller_runs = False
    elif event == "go on":
        arm.controller_runs = True
    elif event == "goodbye" and controller is not None and arm.controller_runs and controller.mode.value != "idle":
        arm.exit_controller()
    elif event in ("float", "hold") and controller is not None and controller.mode.value in ("hold", "float"):
        controller.request(Event.FLOAT if event == "float" else Event.HOLD)
    elif event in ("freeze watchdog", "watchdog goes on"):
        arm.watchdog_runs = event == "watchdog goes on"
    elif event in ("blind", "see"):
        arm.states_arrive = event == "see"
    elif event == "cut heartbeats":
        arm.heartbeats_arrive = False
    elif event == "cut status":
        arm.status_arrives = False
    elif event == "heal":
        arm.heartbeats_arrive = arm.status_arrives = True
    elif event == "release" and arm.watchdog_runs:
        for command in watchdog.release(arm.now):
            arm._watchdog_sends(command)
    elif event == "payload":
        watchdog.on_payload(0.5, np.array([0.0, 0.0, 0.0]), np.zeros((3, 3)))


def test_the_parameter_page_is_up_to_date() -> None:
    assert (URDF.parent / "docs" / "watchdog_parameters.md").read_text() == page()
