"""The simulated arm: still, then true to the physics that Pinocchio computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("mujoco", reason="needs MuJoCo")
pin = pytest.importorskip("pinocchio", reason="needs Pinocchio")

from rnea_ros.model.kinematics import frame  # noqa: E402
from rnea_ros.model.urdf import load_urdf  # noqa: E402
from rnea_ros.simulation.arm import Imperfections, SimulatedArm  # noqa: E402
from rnea_ros.simulation.errors import SimulationError  # noqa: E402
from rnea_ros.simulation.physics import Physics  # noqa: E402

URDF = Path(__file__).resolve().parent.parent / "urdf"
HOME = np.array([0.3, -0.8, 0.2, -2.3, 0.1, 1.6, 0.8])


def panda(**arguments: Any) -> SimulatedArm:
    return SimulatedArm(URDF / "panda.urdf", initial_positions=HOME, **arguments)


def test_f28_the_arm_stands_still_until_the_first_command() -> None:
    arm = panda()
    for _ in range(2000):
        arm.step()
    np.testing.assert_array_equal(arm.position, HOME)
    np.testing.assert_array_equal(arm.state().velocity, np.zeros(7))
    assert arm.time == pytest.approx(2.0)
    arm.receive(np.zeros(7))
    for _ in range(100):
        arm.step()
    assert abs(arm.position - HOME).max() > 0.01


@pytest.mark.parametrize("name", ["panda", "es5"])
def test_the_first_step_accelerates_as_pinocchio_says(name: str) -> None:
    path = str(URDF / f"{name}.urdf")
    model = pin.buildModelFromUrdf(path)
    data = model.createData()
    arm = SimulatedArm(path, physics=Physics(timestep=1e-6, hard_stops=False))
    random = np.random.default_rng(1)
    for _ in range(20):
        q, tau = random.uniform(-2.0, 2.0, model.nq), random.uniform(-3.0, 3.0, model.nv)
        arm.place(q)
        arm.receive(tau)
        arm.step()
        expected = pin.aba(model, data, q, np.zeros(model.nv), tau)
        np.testing.assert_allclose(arm.velocity / arm.timestep, expected, rtol=1e-4, atol=1e-4)


def test_its_own_gravity_torque_is_pinocchios() -> None:
    path = str(URDF / "panda.urdf")
    model = pin.buildModelFromUrdf(path)
    expected = pin.computeGeneralizedGravity(model, model.createData(), HOME)
    np.testing.assert_allclose(panda().gravity_torque(), expected, atol=1e-12)


def test_an_arm_that_adds_gravity_floats_on_zero_and_sags_under_a_payload_it_does_not_know() -> None:
    arm = panda(adds_gravity=True)
    arm.receive(np.zeros(7))
    for _ in range(1000):
        arm.step()
    assert abs(arm.position - HOME).max() < 1e-9
    arm.set_payload(1.0)
    for _ in range(200):
        arm.step()
    height = frame(load_urdf(URDF / "panda.urdf"), arm.position, "panda_link8")[2, 3]
    assert height < frame(load_urdf(URDF / "panda.urdf"), HOME, "panda_link8")[2, 3] - 0.01


def test_a_payload_weighs_what_the_loaded_model_says_and_drops_without_a_trace() -> None:
    loaded = load_urdf(URDF / "panda.urdf").with_payload(2.0, (0.0, 0.0, 0.1))
    from rnea_ros.dynamics.inverse_dynamics import InverseDynamics

    support = InverseDynamics(loaded, backend="python").gravity_torque(HOME)
    arm = panda()
    arm.set_payload(2.0, (0.0, 0.0, 0.1))
    arm.receive(support)
    for _ in range(200):
        arm.step()
    assert abs(arm.position - HOME).max() < 1e-9
    arm.set_payload(0.0)
    arm.place(HOME)
    arm.receive(panda().gravity_torque())
    for _ in range(200):
        arm.step()
    assert abs(arm.position - HOME).max() < 1e-9


def test_a_push_is_the_jacobians_transpose_times_the_wrench() -> None:
    from rnea_ros.model.kinematics import jacobian

    wrench = np.array([3.0, -5.0, 8.0, 0.4, 0.2, -0.3])
    robot = load_urdf(URDF / "panda.urdf")
    arm = panda()
    # the torque that holds the arm against the wrench: environment's wrench w on the tip, τ = g − J_bᵀ w
    arm.push(wrench)
    arm.receive(arm.gravity_torque() - jacobian(robot, HOME, "panda_link8", "body").T @ wrench)
    for _ in range(20):
        arm.step()
    assert abs(arm.position - HOME).max() < 1e-9
    arm.push(None)
    for _ in range(20):
        arm.step()
    assert abs(arm.position - HOME).max() > 1e-6


def test_torque_beyond_the_limits_is_cut_and_reported_as_applied() -> None:
    arm = panda()
    arm.receive(np.full(7, 1e3))
    arm.step()
    np.testing.assert_array_equal(arm.state().effort, [87.0] * 4 + [12.0] * 3)


def test_mass_error_scales_the_gravity_torque() -> None:
    heavy = panda(physics=Physics(mass_scale=1.3))
    np.testing.assert_allclose(heavy.gravity_torque(), 1.3 * panda().gravity_torque(), atol=1e-12)


def test_noise_is_seeded_and_leaves_the_truth_alone() -> None:
    noisy = Imperfections(encoder_noise=1e-4, velocity_noise=1e-2, seed=7)
    one, other = panda(imperfections=noisy), panda(imperfections=noisy)
    first = one.state()
    np.testing.assert_array_equal(first.position, other.state().position)
    assert 1e-6 < abs(first.position - HOME).max() < 1e-3
    np.testing.assert_array_equal(one.position, HOME)


def test_delay_shifts_commands_by_whole_steps() -> None:
    arm = panda(imperfections=Imperfections(delay=3))
    arm.receive(np.ones(7))
    for _ in range(3):
        arm.step()
    np.testing.assert_array_equal(arm.state().effort, np.zeros(7))
    arm.step()
    np.testing.assert_array_equal(arm.state().effort, np.ones(7))


def test_loss_drops_the_given_fraction() -> None:
    arm = panda(imperfections=Imperfections(loss=0.2, seed=3))
    seen = 0
    for value in range(1, 1001):
        arm.receive(np.full(7, value * 1e-3))
        arm.command.update()
        seen += arm.command.effort is not None and arm.command.effort[0] == value * 1e-3
    assert 760 <= seen <= 840


def test_fingers_follow_their_leader_and_locked_ones_stay() -> None:
    free = SimulatedArm(URDF / "panda_hand.urdf", tip="panda_hand")
    assert free.joint_names[-1] == "panda_finger_joint1" and free.model.nv == 9
    free.receive([0.0] * 7 + [0.02])
    for _ in range(300):
        free.step()
    finger = free.data.qpos[free.model.joint("panda_finger_joint2").qposadr[0]]
    assert finger == pytest.approx(free.position[-1], abs=1e-3)
    locked = SimulatedArm(URDF / "panda_hand.urdf", [f"panda_joint{i}" for i in range(1, 8)])
    assert locked.model.nv == 7


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"joints": ["panda_joint1", "elbow"]}, "elbow"),
        ({"initial_positions": [0.0, np.nan]}, "initial_positions"),
        ({"tip": "hook"}, "hook"),
        ({"physics": Physics(viscous_friction=[0.1, 0.2])}, "viscous_friction: 2 values for 7 joints"),
        ({"physics": Physics(armature=[-1.0])}, "armature"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments: dict[str, Any], line: str) -> None:
    with pytest.raises(ValueError, match=line) as caught:
        SimulatedArm(URDF / "panda.urdf", **arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("arguments", [{"loss": 1.5}, {"delay": -1}, {"encoder_noise": np.nan}])
def test_bad_imperfections_are_refused_by_name(arguments: dict[str, Any]) -> None:
    with pytest.raises(SimulationError, match=next(iter(arguments))):
        Imperfections(**arguments)
