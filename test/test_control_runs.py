"""Whole runs in virtual time against MuJoCo: what the modes, laws and limits do to an arm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from virtual_arm import HOME, MILLISECOND, VirtualArm, smooth_motion

from rnea_ros.control.controller import Command
from rnea_ros.control.drive import Way
from rnea_ros.control.errors import ParameterError, Refusal
from rnea_ros.control.supervisor import Event, Mode
from rnea_ros.control.terms import command_terms
from rnea_ros.control.trajectory import Point, TrajectoryRequest

REACH = np.array([0.8, 0.5, -0.6, 0.6, 0.7, -0.5, 0.8])


def ready(robot: str = "panda", **options: Any) -> VirtualArm:
    arm = VirtualArm(robot, **options)
    arm.activate()
    return arm


def track(arm: VirtualArm, seconds: float = 1.25) -> float:
    """A smooth reach from the last reference; returns the largest tracking error, rad."""
    start = arm.controller.drive.reference.state[0].copy()
    arm.controller.on_trajectory(smooth_motion(arm.names, start, start + REACH[: arm.robot.n], seconds))
    worst = 0.0
    while arm.mode is Mode.TRACKING:
        arm.step()
        worst = max(worst, float(np.abs(arm.controller.drive.error[0]).max()))
    return worst


# Floating, tracking, gains


@pytest.mark.parametrize("robot", ["panda", "es5"])
def test_floating_drifts_little_and_stays_where_it_is_left(robot: str) -> None:
    arm = ready(robot)
    arm.controller.request(Event.FLOAT)
    arm.run(0.2)
    path = arm.run(3.0)
    assert np.abs(path - path[0]).max() < 1e-3
    arm.push[4] = arm.controller.drive.laws.float_damping[4]  # towards 1 rad/s
    arm.run(0.3)
    arm.push[:] = 0.0
    arm.run(1.5)
    assert np.abs(arm.q - path[-1]).max() > 0.1  # it was moved
    left = arm.q
    path = arm.run(2.0)
    assert np.abs(path - left).max() < 1e-3
    assert arm.mode is Mode.FLOAT


@pytest.mark.parametrize(("robot", "bound"), [("panda", 1e-3), ("es5", 1e-3)])
def test_tracking_with_full_feedforward(robot: str, bound: float) -> None:
    arm = ready(robot)
    full = track(arm)
    assert full < bound
    assert arm.mode is Mode.HOLD
    arm = ready(robot, feedforward="gravity", limits__tracking_fault=[3.0])
    assert track(arm) > 10.0 * full


def test_feedforward_leads_by_the_latency() -> None:
    late, told = ready(delay=2), ready(delay=2, latency=0.002, feedforward_pd__kd=[8.0, 15.0, 3.5, 15.0, 4.0, 3.0, 1.2])
    assert track(told) < 1.2 * track(late)


def test_computed_torque_tracks() -> None:
    arm = ready(law="computed_torque", computed_torque__kp=[400.0], computed_torque__kd=[40.0])
    assert track(arm) < 1e-3


def test_pd_alone_sags_and_holds_with_gravity_again() -> None:
    arm = ready(feedforward="none", limits__tracking_fault=[3.0])
    arm.run(0.6)
    assert track(arm) > 0.1
    arm.run(1.5)
    assert np.abs(arm.q - arm.controller.drive.reference.state[0]).max() < 2e-3


def test_integral_takes_away_a_model_error() -> None:
    soft = ready(mass_scale=1.1)
    soft.run(3.0)
    firm = ready(mass_scale=1.1, feedforward_pd__ki=[50.0])
    firm.run(3.0)
    target = HOME["panda"]
    assert np.abs(soft.q - target).max() > 0.015
    assert np.abs(firm.q - target).max() < 0.004
    assert (np.abs(firm.controller.drive.laws.integral) <= firm.controller.settings.integral_limit).all()


def test_gains_change_live_and_only_as_a_whole() -> None:
    arm = ready()
    arm.run(0.2)
    before = arm.controller.settings
    with pytest.raises(ParameterError, match=r"feedforward_pd\.kp.*diverge"):
        arm.controller.set_parameters({"feedforward_pd.kd": [1.0], "feedforward_pd.kp": [1e9]})
    with pytest.raises(ParameterError, match="the nearest is 'feedforward_pd.kp'"):
        arm.controller.set_parameters({"feedforward_pd.kd": [1.0], "feedforward_pd.k": [90.0]})
    with pytest.raises(ParameterError, match="'rate' is read at configure"):
        arm.controller.set_parameters({"rate": 500.0})
    assert arm.controller.settings is before
    arm.controller.set_parameters({"feedforward_pd.kp": [90.0, 90.0, 90.0, 90.0, 30.0, 20.0, 10.0]})
    arm.run(0.2)
    assert arm.mode is Mode.HOLD and np.abs(arm.q - HOME["panda"]).max() < 1e-3


# Starts, ends and motions


def test_f19_the_hold_torque_is_there_before_activation_completes() -> None:
    arm = VirtualArm()
    for _ in range(30):
        arm.step()
    command = arm.controller.activate(arm.now)
    gravity = arm.controller.arm.dynamics.gravity_torque(HOME["panda"])
    assert command.effort is not None
    np.testing.assert_allclose(command.effort, gravity, atol=0.01)
    arm.take(command)
    path = arm.run(1.0)
    assert np.abs(path - HOME["panda"]).max() < 2e-4


def test_f05_activation_begins_from_the_measurement() -> None:
    arm = ready()
    track(arm)
    for command in arm.controller.deactivate(arm.now):
        arm.take(command)
    assert arm.mode is Mode.IDLE
    arm.effort = None  # brakes on, and moved
    arm._queue.clear()
    arm.data.qpos[:] = HOME["panda"]
    arm.data.qvel[:] = 0.0
    arm.controller.reader.reset()
    arm.step()
    arm.take(arm.controller.activate(arm.now))
    path = arm.run(0.5)
    assert np.abs(path - HOME["panda"]).max() < 1e-3


def test_f05_cancel_does_not_step_back_by_the_tracking_error() -> None:
    arm = ready(mass_scale=1.1)  # lags behind its reference
    arm.run(0.6)
    start = arm.controller.drive.reference.state[0].copy()
    arm.controller.on_trajectory(smooth_motion(arm.names, start, start + REACH, 2.0))
    arm.run(0.7)
    error = arm.controller.drive.error[0].copy()
    assert np.abs(error).max() > 0.015
    reference = arm.controller.drive.reference.state.copy()
    arm.controller.on_trajectory(TrajectoryRequest((), ()))
    arm.step()
    after = arm.controller.drive.reference.state
    assert np.abs(after[0] - reference[0]).max() < 2e-3  # goes on from the reference, not from the arm
    np.testing.assert_allclose(after[1], reference[1], atol=0.02)
    arm.run(1.0)
    assert arm.mode is Mode.HOLD and np.abs(arm.qd).max() < 0.01


def test_f02_a_new_trajectory_relaxes_nothing() -> None:
    arm = ready(noise=0.0)
    start = HOME["panda"].copy()
    arm.controller.on_trajectory(smooth_motion(arm.names, start, start + REACH, 1.5))
    for k in range(12):  # replanned again and again, while moving
        arm.run(0.05)
        rest = np.zeros(7)
        request = TrajectoryRequest(arm.names, [Point(1.5, start + REACH * (k % 3) / 2.0, rest, rest)])
        arm.controller.on_trajectory(request)
    steps = np.abs(np.diff(np.array(arm.commands[-600:]), axis=0)).max()
    assert steps < 0.4  # Nm in a millisecond; the rate limit would let 0.5 pass
    gravity = arm.controller.arm.dynamics.gravity_torque(arm.q)
    assert np.abs(arm.commands[-1][1] - gravity[1]) < 15.0


def test_f01_a_tolerance_abort_ends_in_a_supported_hold() -> None:
    arm = ready(limits__tracking_fault=[0.05])
    start = HOME["panda"]
    arm.controller.on_trajectory(smooth_motion(arm.names, start, start + REACH, 1.25))
    arm.run(0.4)
    arm.push[1] = -30.0  # somebody stands in the way
    for _ in range(500):
        arm.step()
        if arm.mode is Mode.FAULT:
            break
    assert "panda_joint2 is" in arm.controller.supervisor.text and "above 0.05 rad" in arm.controller.supervisor.text
    at_fault = arm.q
    arm.push[:] = 0.0
    arm.run(0.7)
    rest = arm.q
    path = arm.run(2.0)
    assert np.abs(path - rest).max() < 2e-3  # held
    assert np.abs(rest - at_fault).max() < 0.25  # overrun at up to 1.2 rad/s
    with pytest.raises(Refusal, match="call ~/reset first"):
        arm.controller.on_trajectory(smooth_motion(arm.names, start, start, 1.0))
    arm.controller.request(Event.RESET)
    path = arm.run(0.5)
    assert arm.mode is Mode.HOLD and np.abs(path - rest).max() < 3e-3


def test_f04_f34_every_end_leaves_a_defined_torque() -> None:
    arm = ready()
    arm.controller.on_trajectory(smooth_motion(arm.names, HOME["panda"], HOME["panda"] + REACH, 1.25))
    arm.run(0.5)
    commands = [command.effort for command in arm.controller.deactivate(arm.now)]
    assert commands and arm.mode is Mode.IDLE
    gravity = arm.controller.arm.dynamics.gravity_torque(arm.controller.reader.position)
    last = commands[-1]
    assert last is not None
    np.testing.assert_allclose(last, gravity, atol=1e-9)  # support, without damping or feedback
    assert arm.state() is None  # silent

    arm = ready(own_gravity=True, gravity_source="hardware")
    arm.controller.on_trajectory(smooth_motion(arm.names, HOME["panda"], HOME["panda"] + REACH, 1.25))
    arm.run(0.5)
    ramp = [command.effort for command in arm.controller.deactivate(arm.now) if command.effort is not None]
    np.testing.assert_array_equal(ramp[-1], 0.0)
    steps = np.diff(np.vstack([arm.commands[-1], *ramp]), axis=0)
    assert np.abs(steps).max() <= 0.5 + 1e-9


def test_stop_brakes_into_a_hold_and_into_silence_where_hardware_carries() -> None:
    for hardware in (False, True):
        arm = ready(own_gravity=hardware, gravity_source="hardware" if hardware else "self")
        arm.controller.on_trajectory(smooth_motion(arm.names, HOME["panda"], HOME["panda"] + REACH, 1.25))
        arm.run(0.6)
        speed = np.abs(arm.qd).max()
        at = arm.q
        arm.controller.request(Event.STOP)
        arm.run(1.0)
        assert np.abs(arm.qd).max() < 0.01
        assert np.abs(arm.q - at).max() < speed**2 / 5.0 + 0.01
        assert arm.mode is (Mode.IDLE if hardware else Mode.HOLD)
        if hardware:
            np.testing.assert_array_equal(arm.commands[-1], 0.0)
        rest = arm.q
        path = arm.run(1.0)
        assert np.abs(path - rest).max() < 5e-3  # without friction what speed is left stays
        assert (arm.state() is None) == hardware


# Gravity, payload, terms


@pytest.mark.parametrize("source", ["self", "hardware"])
def test_f21_gravity_is_compensated_once(source: str) -> None:
    arm = ready(gravity_source=source, own_gravity=source == "hardware")
    path = arm.run(1.0)
    assert np.abs(path - HOME["panda"]).max() < 1e-3
    carried = np.abs(arm.commands[-1]).max()
    assert carried > 15.0 if source == "self" else carried < 0.5
    assert track(arm) < 1e-3


def test_f22_tilted_mount_and_residual() -> None:
    tilt = 9.81 * np.array([0.5, 0.0, -np.sqrt(0.75)])
    arm = VirtualArm(gravity=tilt.tolist())
    arm.model.opt.gravity[:] = tilt
    arm.activate()
    assert np.abs(arm.run(1.0) - HOME["panda"]).max() < 1e-3

    arm = VirtualArm(gravity=tilt.tolist(), gravity_source="residual", own_gravity=True)
    arm.hardware_gravity = np.array([0.0, 0.0, -9.81])  # it believes that it stands upright
    arm.model.opt.gravity[:] = tilt
    arm.activate()
    path = arm.run(2.5)
    assert np.abs(path - HOME["panda"]).max() < 0.03  # the first command is zero: it sags until support is there
    assert np.abs(path[-1] - HOME["panda"]).max() < 1e-3


def test_f23_payload_is_told_and_may_be_known_to_the_hardware() -> None:
    mass, com = 2.0, np.array([0.0, 0.0, 0.05])
    arm = ready()
    arm.run(0.6)
    arm.controller.on_payload(mass, com, np.zeros((3, 3)), "")
    held = arm.controller.arm.support(HOME["panda"], np.zeros(7))
    bare = VirtualArm().controller.arm.support(HOME["panda"], np.zeros(7))
    assert np.abs(held - bare).max() > 5.0
    arm.controller.on_payload(0.0, com, np.zeros((3, 3)), "")
    np.testing.assert_array_equal(arm.controller.arm.support(HOME["panda"], np.zeros(7)), bare)
    assert arm.rate_excess < 1e-9
    with pytest.raises(Refusal, match="payload: .*unknown frame"):
        arm.controller.on_payload(mass, com, np.zeros((3, 3)), "hand")
    with pytest.raises(Refusal, match="payload"):
        arm.controller.on_payload(-1.0, com, np.zeros((3, 3)), "")

    told: dict[str, Any] = {"payload__mass": mass, "payload__com": com.tolist(), "gravity_source": "hardware"}
    knows = VirtualArm(own_gravity=True, payload__hardware_knows=True, **told).controller.arm
    assert knows.carries_all and not knows.support(HOME["panda"], knows.share(HOME["panda"])).any()
    not_told = VirtualArm(own_gravity=True, **told).controller.arm
    np.testing.assert_allclose(not_told.support(HOME["panda"], not_told.share(HOME["panda"])), held - bare, atol=1e-9)
    assert not not_told.carries_all


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gravity_at": "measured"},
        {"feedforward": "gravity"},
        {"feedforward": "none", "limits__tracking_fault": [3.0]},
        {"law": "computed_torque", "computed_torque__kp": [400.0], "computed_torque__kd": [40.0]},
        {"gravity_source": "hardware", "own_gravity": True, "friction_feedforward": True},
        {"gravity_source": "hardware", "own_gravity": True, "payload__mass": 1.0},
        {"payload__mass": 1.0, "payload__com": [0.0, 0.1, 0.1]},
    ],
)
def test_f27_named_terms_add_up_to_the_command(options: dict[str, Any]) -> None:
    arm = ready(noise=0.0, **options)
    still = command_terms(arm.controller.drive)
    if arm.controller.settings["gravity_source"] == "self":
        expected = arm.controller.arm.dynamics.terms(arm.q, np.zeros(7), np.zeros(7)).gravity
        np.testing.assert_allclose(still["gravity"], expected, atol=1e-6)
    arm.run(0.6)
    start = arm.controller.drive.reference.state[0].copy()
    arm.controller.on_trajectory(smooth_motion(arm.names, start, start + REACH, 2.0))
    arm.run(0.7)
    for event in (None, Event.HOLD, Event.FLOAT):
        if event is not None:
            arm.controller.request(event)
            arm.run(1.0)
        terms = command_terms(arm.controller.drive)
        gate = arm.controller.drive.gate
        if not (gate.clamped.any() or gate.slowed.any()):
            np.testing.assert_allclose(terms["gate"], 0.0, atol=1e-9)
        total = sum((value for name, value in terms.items() if name != "command"), np.zeros(7))
        np.testing.assert_allclose(total, terms["command"], atol=1e-9)


def test_external_wrench_is_fed_forward_in_its_frame_and_times_out() -> None:
    arm = ready()
    arm.run(0.6)
    before = arm.commands[-1].copy()
    for _ in range(60):
        arm.controller.on_wrench(np.array([0.0, 0.0, 10.0, 0.0, 0.0, 0.0]), "panda_link7", arm.now)
        arm.step()
    assert np.abs(arm.commands[-1] - before).max() > 2.0
    assert command_terms(arm.controller.drive)["wrench"].any()
    arm.run(0.2)
    assert not command_terms(arm.controller.drive)["wrench"].any()
    with pytest.raises(Refusal, match="frame 'panda_link3' is not fixed to the tip"):
        arm.controller.on_wrench(np.zeros(6), "panda_link3", arm.now)
    with pytest.raises(Refusal, match="a value is nan, expected a number"):
        arm.controller.on_wrench(np.full(6, np.nan), "", arm.now)


@pytest.mark.parametrize("force", [1e308, -1e150, 1e5, 1e3])
def test_a_wrench_that_no_joint_could_carry_is_refused_and_the_arm_stays(force: float) -> None:
    arm = ready()
    arm.run(0.6)
    before = arm.controller.reader.position.copy()
    for _ in range(60):
        with pytest.raises(Refusal, match="external_wrench: (a value is .*1e|takes .* Nm in 'panda_joint2', above)"):
            arm.controller.on_wrench(np.array([0.0, 0.0, force, 0.0, 0.0, 0.0]), "", arm.now)
        arm.step()
    assert arm.controller.mode is Mode.HOLD
    np.testing.assert_allclose(arm.controller.reader.position, before, atol=1e-3)


# Inputs that go wrong


@pytest.mark.parametrize("mode", [Mode.HOLD, Mode.FLOAT])
def test_bad_trajectories_leave_mode_and_arm_alone(mode: Mode) -> None:
    arm = ready()
    if mode is Mode.FLOAT:
        arm.controller.request(Event.FLOAT)
    arm.run(0.3)
    where, n = arm.q, arm.robot.n
    nan, near, far = [float("nan")] * n, arm.q.tolist(), (arm.q + 0.5).tolist()
    bad = [
        TrajectoryRequest(["x"] * n, [Point(1.0, near)]),
        TrajectoryRequest(arm.names, [Point(1.0, near[:-1])]),
        TrajectoryRequest(arm.names, [Point(1.0, near), Point(0.5, near)]),
        TrajectoryRequest(arm.names, [Point(1.0, nan)]),
        TrajectoryRequest(arm.names, [Point(0.0, far), Point(1.0, far)]),
        TrajectoryRequest(arm.names, [Point(0.001, far)]),
        TrajectoryRequest(arm.names, [Point(1.0, near)], stamp=arm.now - 5_000 * MILLISECOND),
    ]
    for request in bad:
        with pytest.raises(Refusal) as refused:
            arm.controller.on_trajectory(request)
        assert "\n" not in str(refused.value)
        assert arm.mode is mode
    assert np.abs(arm.run(0.5) - where).max() < 1e-3


def test_f06_f07_states_in_any_order_with_strangers() -> None:
    arm = ready()
    order = np.random.default_rng(3).permutation(7)

    def shuffled(virtual: VirtualArm) -> Command | None:
        q, qd = virtual.measured()
        names = ["gripper", *(virtual.names[i] for i in order)]
        nan = float("nan")
        return virtual.state(names=names, position=[nan, *q[order]], velocity=[nan, *qd[order]], effort=[nan] * 8)

    path = arm.run(0.5, shuffled)
    assert np.abs(path - HOME["panda"]).max() < 1e-3 and arm.mode is Mode.HOLD


def test_missing_velocity_still_tracks() -> None:
    arm = ready(noise=1e-6)
    arm.controller.reader.reset()

    def without(virtual: VirtualArm) -> Command | None:
        return virtual.state(velocity=[])

    arm.run(0.5, without)
    assert arm.mode is Mode.HOLD
    assert sum("no velocity" in line for _, line in arm.log) == 1
    start = arm.controller.drive.reference.state[0].copy()
    arm.controller.on_trajectory(smooth_motion(arm.names, start, start + 0.3 * REACH, 1.5))
    arm.run(2.0, without)
    assert arm.mode is Mode.HOLD and np.abs(arm.q - start - 0.3 * REACH).max() < 5e-3


def test_f30_a_reset_of_the_clock_begins_anew_without_a_spike() -> None:
    arm = ready()
    arm.controller.on_trajectory(smooth_motion(arm.names, HOME["panda"], HOME["panda"] + REACH, 1.25))
    arm.run(0.5)
    arm.now = 5_000 * MILLISECOND  # the simulation was reset
    arm._queue.clear()
    arm.run(1.0)
    assert arm.mode is Mode.HOLD
    assert any("clock jumped" in line for _, line in arm.log)
    assert arm.rate_excess < 1e-9
    assert np.abs(arm.qd).max() < 0.01


def test_f33_two_publishers_of_one_input_are_refused_with_their_names() -> None:
    arm = ready()
    arm.controller.on_publishers("joint_trajectory", ["moveit", "script"])
    with pytest.raises(Refusal, match="2 nodes publish on it: moveit, script; one must stop"):
        arm.controller.on_trajectory(smooth_motion(arm.names, HOME["panda"], HOME["panda"], 1.0))
    arm.controller.on_publishers("joint_trajectory", ["moveit"])
    arm.controller.on_trajectory(smooth_motion(arm.names, HOME["panda"], HOME["panda"] + 0.1, 1.0))
    assert arm.mode is Mode.TRACKING


def test_slow_joint_states_are_refused_with_the_reason() -> None:
    arm = VirtualArm()

    def thirty_hertz(virtual: VirtualArm) -> Command | None:
        return virtual.state() if (virtual.now // MILLISECOND) % 33 == 0 else None

    for _ in range(1000):
        arm.step(thirty_hertz)
    arm.state()
    with pytest.raises(Refusal, match="joint states arrive at .* Hz, control needs 200 Hz"):
        arm.controller.activate(arm.now)


def test_enabling_checks_pose_and_speed() -> None:
    arm = VirtualArm()
    with pytest.raises(Refusal, match="no fresh joint state"):
        arm.controller.activate(arm.now)
    arm.run(0.05)
    arm.state(velocity=np.full(7, 0.5), stamp=arm.now)
    with pytest.raises(Refusal, match="'panda_joint1' moves at 0.5 rad/s"):
        arm.controller.activate(arm.now)
    arm = VirtualArm()
    arm.data.qpos[3] = 1.0
    arm.run(0.05)
    with pytest.raises(Refusal, match="'panda_joint4' stands at 1, outside -3.072 .. -0.0698"):
        arm.controller.activate(arm.now)


# Limits


def test_soft_limits_slow_the_floating_arm_and_push_it_back() -> None:
    arm = VirtualArm()
    arm.data.qpos[0] = 2.75
    arm.activate()
    arm.controller.request(Event.FLOAT)
    arm.run(0.1)
    arm.push[0] = 8.0
    arm.run(1.0)
    assert arm.q[0] > arm.controller.drive.soft_upper[0]
    assert arm.q[0] < arm.robot.upper[0] + 0.1  # the spring stands against the push
    arm.push[:] = 0.0
    arm.run(3.0)
    assert arm.q[0] < arm.controller.drive.soft_upper[0] + 0.01
    assert arm.mode is Mode.FLOAT


def test_too_fast_is_a_fault_that_brakes_and_holds() -> None:
    arm = ready()
    arm.controller.request(Event.FLOAT)
    arm.push[0] = 40.0
    for _ in range(1000):
        arm.step()
        if arm.mode is Mode.FAULT:
            break
    assert "panda_joint1 moves at" in arm.controller.supervisor.text
    arm.push[:] = 0.0
    arm.run(1.5)
    rest = arm.q
    assert np.abs(arm.run(1.0) - rest).max() < 2e-3


def test_f18_saturation_keeps_gravity_support() -> None:
    limit = np.array([87.0, 13.0, 40.0, 40.0, 12.0, 12.0, 12.0])
    arm = ready(limits__effort=limit.tolist(), limits__tracking_fault=[3.0])
    arm.push[1] = -30.0  # more than the limit leaves to answer with
    arm.run(0.08)
    arm.push[:] = 0.0
    path = arm.run(3.0)
    assert arm.controller.monitor.clamped["panda_joint2"] > 20
    assert np.abs(path[-1] - HOME["panda"]).max() < 5e-3
    assert arm.mode is Mode.HOLD


# Observer, watchdog, continuous joints


def test_momentum_observer_sees_a_push_and_contact_holds() -> None:
    arm = ready()
    track(arm)
    assert np.abs(arm.controller.observer.external).max() < 0.5
    arm.push[1] = 8.0
    arm.run(0.4)
    np.testing.assert_allclose(arm.controller.observer.external, arm.push, atol=0.4)

    for action, mode in (("hold", Mode.HOLD), ("float", Mode.FLOAT)):
        arm = ready(contact__action=action, contact__threshold=[5.0])
        arm.controller.on_trajectory(smooth_motion(arm.names, HOME["panda"], HOME["panda"] + REACH, 1.5))
        arm.run(0.5)
        assert arm.mode is Mode.TRACKING
        arm.push[1] = -12.0
        arm.run(0.2)
        assert arm.mode is mode
        assert any("contact:" in line and "panda_joint2" in line for _, line in arm.log)


@pytest.mark.parametrize("meaning", ["ignored", "total", "command"])
def test_f32_measured_effort_means_what_the_parameter_says(meaning: str) -> None:
    """A motor current is never taken for a torque; a torque with or without the robot's own share is."""
    arm = ready(gravity_source="hardware", own_gravity=True, effort_state=meaning, noise=0.0)

    def measured(virtual: VirtualArm) -> Command | None:
        share = virtual.controller.arm.share(virtual.q)
        command = virtual.effort if virtual.effort is not None else np.zeros(7)
        sensed = {"ignored": np.full(7, 1e4), "total": command + share, "command": command}[meaning]
        return virtual.state(effort=sensed)

    arm.push[1] = 5.0
    arm.run(0.6, measured)
    np.testing.assert_allclose(arm.controller.observer.external, arm.push, atol=0.3)


def test_f29_age_and_jitter_are_known() -> None:
    arm = ready(noise=0.0)
    arm.run(0.3)
    assert arm.controller.timekeeper.age == 0.0 and arm.controller.timekeeper.jitter < 1e-9

    def late(virtual: VirtualArm) -> Command | None:
        keep = (virtual.now // MILLISECOND) % 3 != 0
        return virtual.state(stamp=virtual.now - MILLISECOND // 2) if keep else None

    arm.run(0.3, late)
    assert arm.controller.timekeeper.age == pytest.approx(0.5e-3, rel=0.05)
    assert arm.controller.timekeeper.jitter == pytest.approx(0.5e-3, rel=0.2)
    assert arm.controller.timekeeper.rate == pytest.approx(667.0, rel=0.1)


def test_the_record_of_the_last_seconds_is_in_order() -> None:
    arm = ready(history__seconds=0.1)
    arm.run(0.35)
    rows = arm.controller.history.snapshot()
    assert len(rows) == 100
    np.testing.assert_allclose(np.diff(rows[:, 0]), 1e-3, atol=1e-6)
    np.testing.assert_allclose(rows[-1, -7:], arm.commands[-1])
    assert len(arm.controller.history.columns(arm.names)) == rows.shape[1]


def test_the_arm_is_the_watchdogs_while_it_says_so() -> None:
    arm = ready()
    arm.run(0.3)
    arm.controller.on_watchdog("active", arm.now, None, arm.now)
    command = arm.state()
    assert command is not None and command.effort is None and command.mode == "waiting"
    with pytest.raises(Refusal, match="while the watchdog has the arm"):
        arm.controller.on_trajectory(smooth_motion(arm.names, HOME["panda"], HOME["panda"], 1.0))
    arm.now += MILLISECOND
    last = arm.commands[-1] + 0.3
    arm.controller.on_watchdog("watching", arm.now, last, arm.now)
    arm.commands.append(last)
    path = arm.run(0.5)
    assert arm.mode is Mode.HOLD and np.abs(path - HOME["panda"]).max() < 2e-3
    assert arm.rate_excess < 1e-9  # the first command is next to the watchdog's last


def test_a_process_that_slept_asks_first_where_a_watchdog_lives() -> None:
    for alive in (False, True):
        arm = ready()
        arm.run(0.3)
        if alive:
            arm.controller.on_watchdog("watching", arm.now, None, arm.now)
        arm.now += 60 * MILLISECOND  # SIGSTOP, SIGCONT
        command = arm.state()
        assert command is not None
        assert (command.effort is None) == alive
        if alive:
            arm.now += MILLISECOND
            arm.controller.on_watchdog("watching", arm.now, None, arm.now)
            arm.now += MILLISECOND
            command = arm.state()
            assert command is not None and command.effort is not None


def test_continuous_joint_is_tracked_across_pi() -> None:
    text = (arm_urdf := VirtualArm.urdf("panda")).read_text()
    assert arm_urdf.exists()
    first = text.index('<joint name="panda_joint7"')
    text = text[:first] + text[first:].replace('type="revolute"', 'type="continuous"', 1)
    arm = VirtualArm("panda", description=text)
    assert arm.robot.continuous[6]
    arm.data.qpos[6] = 3.0
    arm.activate()

    def wrapped(virtual: VirtualArm) -> Command | None:
        q, qd = virtual.measured()
        q[6] = (q[6] + np.pi) % (2.0 * np.pi) - np.pi
        return virtual.state(position=q, velocity=qd)

    arm.run(0.1, wrapped)
    goal = HOME["panda"].copy()
    goal[6] = -3.0  # 0.28 rad further, across pi
    rest = np.zeros(7)
    arm.controller.on_trajectory(TrajectoryRequest(arm.names, [Point(1.0, goal, rest, rest)]))
    arm.run(1.5, wrapped)
    assert arm.mode is Mode.HOLD
    assert arm.q[6] == pytest.approx(2.0 * np.pi - 3.0, abs=2e-3)
    assert arm.controller.drive.way is Way.LAW


@pytest.mark.parametrize("change", [{"payload.mass": 999.0, "payload.com": [0.0, 0.0, 9.0]}, {"limits.effort": [1.0]}])
def test_what_takes_away_the_support_is_refused_and_the_arm_stays(change: dict) -> None:
    arm = ready()
    arm.run(0.6)
    before = arm.controller.reader.position.copy()
    with pytest.raises(ParameterError, match="gravity and payload would take .* Nm in 'panda_joint2' where the arm is"):
        arm.controller.set_parameters(change)
    arm.run(0.2)
    np.testing.assert_allclose(arm.controller.reader.position, before, atol=1e-3)


@pytest.mark.parametrize("milliseconds", [40, 97, 99, 100, 300])
def test_time_in_which_this_process_slept_is_no_silence_of_the_joint_states(milliseconds: int) -> None:
    """The tick after a sleep runs before the state that waits: it must not take the sleep for lost states."""
    arm = ready()
    arm.run(0.103)  # the last tick was some milliseconds before the last state
    arm.now += milliseconds * MILLISECOND
    arm.take(arm.controller.tick(arm.now))
    assert arm.mode is Mode.HOLD, arm.log


def test_a_process_that_sleeps_again_and_again_still_notices_that_no_state_comes() -> None:
    arm = ready()
    arm.run(0.1)
    for _ in range(8):
        arm.now += 60 * MILLISECOND
        arm.take(arm.controller.tick(arm.now))
    assert arm.mode is Mode.FAULT
    assert "no joint state for" in arm.controller.supervisor.text
