"""The engine behind the simulated arm: true to our own dynamics, to energy and to what the description says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

mujoco = pytest.importorskip("mujoco", reason="needs MuJoCo")

from rnea_ros.dynamics.inverse_dynamics import InverseDynamics  # noqa: E402
from rnea_ros.model.urdf import load_urdf  # noqa: E402
from rnea_ros.simulation.arm import SimulatedArm  # noqa: E402
from rnea_ros.simulation.errors import SimulationError  # noqa: E402
from rnea_ros.simulation.physics import Physics  # noqa: E402

URDF = Path(__file__).resolve().parent.parent / "urdf"
FREE = Physics(hard_stops=False)
WEIGHTLESS = (0.0, 0.0, 0.0)


def run(arm: SimulatedArm, seconds: float, law: Callable[[SimulatedArm], Any] | None = None) -> None:
    for _ in range(round(seconds / arm.timestep)):
        arm.receive(np.zeros(len(arm.joint_names)) if law is None else law(arm))
        arm.step()


def energy(arm: SimulatedArm) -> float:
    """Kinetic and potential, J."""
    arm.model.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_ENERGY
    mujoco.mj_forward(arm.model, arm.data)
    return float(arm.data.energy.sum())


@pytest.mark.parametrize("name", ["panda", "panda_hand", "es5", "planar_2r"])
def test_the_engine_moves_as_our_forward_dynamics_say(name: str) -> None:
    robot = load_urdf(URDF / f"{name}.urdf", friction=False)
    dynamics = InverseDynamics(robot, backend="python")
    arm = SimulatedArm(URDF / f"{name}.urdf", physics=Physics(timestep=1e-7, hard_stops=False))
    assert arm.joint_names == robot.joint_names
    random = np.random.default_rng(3)
    for _ in range(10):
        q, qd = random.uniform(-1.0, 1.0, robot.n), random.uniform(-2.0, 2.0, robot.n)
        effort = random.uniform(-1.0, 1.0, robot.n) * np.minimum(arm.effort_limits, 10.0)
        arm.place(q, qd)
        arm.receive(effort)
        arm.step()
        expected = dynamics.acceleration(q, qd, effort)
        got = (arm.velocity - qd) / arm.timestep
        np.testing.assert_allclose(got, expected, rtol=2e-4, atol=2e-4 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["panda", "es5", "planar_2r"])
def test_a_fast_fall_conserves_energy(name: str) -> None:
    arm = SimulatedArm(URDF / f"{name}.urdf", physics=FREE)
    arm.place(np.full(len(arm.joint_names), 0.4))
    before = energy(arm)
    run(arm, 0.5)
    assert np.abs(arm.velocity).max() > 2.0
    assert energy(arm) == pytest.approx(before, abs=1e-3)


def test_armature_is_rotor_inertia() -> None:
    slow = SimulatedArm(URDF / "planar_2r.urdf", physics=Physics(armature=(1.0, 0.5), gravity=WEIGHTLESS))
    dynamics = InverseDynamics(load_urdf(URDF / "planar_2r.urdf", friction=False), backend="python")
    q, effort = np.array([0.3, 0.4]), np.array([1.0, -0.5])
    slow.place(q)
    slow.receive(effort)
    slow.step()
    expected = np.linalg.solve(dynamics.mass_matrix(q) + np.diag([1.0, 0.5]), effort)
    np.testing.assert_allclose(slow.velocity / slow.timestep, expected, rtol=1e-5)


def test_viscous_friction_takes_speed_away_as_it_should() -> None:
    """One axis under viscous friction alone: ω(t) = ω₀ exp(−D t / I)."""
    physics = Physics(gravity=WEIGHTLESS, viscous_friction=(0.5,), hard_stops=False)
    robot = load_urdf(URDF / "planar_2r.urdf", load_urdf(URDF / "planar_2r.urdf").joint_names[:1])
    arm = SimulatedArm(URDF / "planar_2r.urdf", robot.joint_names, physics=physics)
    inertia = InverseDynamics(robot, backend="python").mass_matrix(np.zeros(1))[0, 0]
    arm.place([0.0], [1.0])
    run(arm, 0.2)
    assert arm.velocity[0] == pytest.approx(np.exp(-0.5 * 0.2 / inertia), rel=1e-3)


def test_viscous_friction_on_a_light_wrist_does_not_blow_up() -> None:
    arm = SimulatedArm(URDF / "es5.urdf", physics=Physics(gravity=WEIGHTLESS, viscous_friction=(5.0,)))
    arm.place(np.zeros(6), np.full(6, 0.5))
    run(arm, 0.5)
    assert np.abs(arm.velocity).max() < 0.5


def test_coulomb_friction_stops_a_joint_and_holds_it() -> None:
    physics = Physics(gravity=WEIGHTLESS, coulomb_friction=(1.0, 1.0))
    arm = SimulatedArm(URDF / "planar_2r.urdf", physics=physics)
    arm.place([0.0, 0.0], [0.2, 0.1])
    run(arm, 1.0)
    assert np.abs(arm.velocity).max() < 1e-3
    before = arm.position.copy()
    run(arm, 0.5, lambda _: [0.5, 0.5])  # less than the friction
    np.testing.assert_allclose(arm.position, before, atol=2e-3)
    run(arm, 0.5, lambda _: [3.0, 0.0])
    assert np.abs(arm.position - before).max() > 0.01


@pytest.mark.parametrize("stops", [True, False])
def test_position_limits_stop_a_joint_where_asked(stops: bool) -> None:
    arm = SimulatedArm(URDF / "panda.urdf", physics=Physics(hard_stops=stops, gravity=WEIGHTLESS))
    upper = load_urdf(URDF / "panda.urdf").upper
    run(arm, 2.0, lambda arm: np.array([0.0] * 6 + [0.3]) - 0.1 * arm.velocity)
    assert bool(arm.position[6] < upper[6] + 0.02) is stops


def test_locked_joints_leave_the_chosen_ones_in_their_order() -> None:
    chosen = ("panda_joint4", "panda_joint2")
    arm = SimulatedArm(URDF / "panda.urdf", chosen, initial_positions=[-1.0, 0.5], physics=FREE)
    dynamics = InverseDynamics(load_urdf(URDF / "panda.urdf", chosen), backend="python")
    np.testing.assert_array_equal(arm.position, [-1.0, 0.5])
    np.testing.assert_allclose(arm.gravity_torque(), dynamics.gravity_torque(np.array([-1.0, 0.5])), atol=1e-9)


@pytest.mark.parametrize(
    "arguments", [{"mass_scale": 0.0}, {"timestep": np.nan}, {"gravity": (0.0, np.nan, 0.0)}, {"gravity": (0.0, -9.81)}]
)
def test_impossible_physics_is_named(arguments: dict[str, Any]) -> None:
    with pytest.raises(SimulationError, match=f"^{next(iter(arguments))}: "):
        Physics(**arguments)
