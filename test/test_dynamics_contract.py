"""What callers rely on besides torque: whose memory is written when, frames of payload and wrench, which C it is.

The definitions are those of the lecture on dynamics (reference 003): M from Jacobians of the bodies (5.4), C from the
Christoffel symbols of M (5.4), the wrench at the tip by virtual work (3.2), the planar 2R arm (5.5).
"""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from planar_arm import planar_arm
from random_robots import RandomRobot, random_robots

from rnea_ros import InverseDynamics, frame, jacobian, load_urdf
from rnea_ros.model.robot import RobotModel

URDF = Path(__file__).parents[1] / "urdf"
BACKENDS = ("numba", "python", "recursion")
N = 7
quick = settings(max_examples=25, deadline=None)


@pytest.fixture(scope="module", params=BACKENDS)
def panda(request: pytest.FixtureRequest) -> InverseDynamics:
    return InverseDynamics(load_urdf(URDF / "panda.urdf"), backend=request.param)


@pytest.mark.parametrize("shift", [0, 1, 64, 1500])
@pytest.mark.parametrize("wrenches", [None, 1, 3000])
def test_out_may_overlap_the_inputs(panda: InverseDynamics, shift: int, wrenches: int | None) -> None:
    """The result is that of the inputs as they were, wherever `out` lies in their memory."""
    rng = np.random.default_rng(shift)
    memory = rng.normal(size=(3000 + shift, N))
    q, qd, qdd = memory[:3000], *rng.normal(size=(2, 3000, N))
    wrench = None if wrenches is None else rng.normal(size=(wrenches, 6)).squeeze()
    expected = panda.torque(q.copy(), qd, qdd, wrench)
    np.testing.assert_array_equal(panda.torque(q, qd, qdd, wrench, out=memory[shift:]), expected)
    memory[:] = rng.normal(size=memory.shape)
    expected = panda.gravity_torque(q.copy())
    np.testing.assert_array_equal(panda.gravity_torque(q, out=memory[shift:]), expected)


class Subclass(np.ndarray):
    pass


OUT = {
    "subclass": lambda shape: np.zeros(shape).view(Subclass),
    "masked array": np.ma.zeros,
    "unaligned": lambda shape: np.zeros(8 * np.prod(shape) + 1, np.uint8)[1:].view(np.float64).reshape(shape),
    "every other of a longer array": lambda shape: np.zeros((*shape[:-1], 2 * shape[-1]))[..., ::2],
    "columns first": lambda shape: np.zeros(shape[::-1]).T,
}


@pytest.mark.parametrize("kind", OUT)
def test_out_of_any_layout(panda: InverseDynamics, kind: str) -> None:
    many, wrench = np.random.default_rng(9).normal(size=(3, 150, N)), np.arange(6.0)
    for states in (many[:, 0], many):
        calls = {
            "torque": lambda out, states=states: panda.torque(*states, out=out),
            "lists": lambda out, states=states: panda.torque(*states.tolist(), out=out),
            "wrench": lambda out, states=states: panda.torque(*states, wrench, out=out),
            "gravity": lambda out, states=states: panda.gravity_torque(states[0], out=out),
        }
        for name, call in calls.items():
            out = OUT[kind](states[0].shape)
            assert call(out) is out, name
            np.testing.assert_array_equal(np.asarray(out), call(None), err_msg=name)


def test_out_of_one_state_may_overlap_the_inputs(panda: InverseDynamics) -> None:
    memory, (qd, qdd) = np.linspace(-1.0, 1.0, N + 3), np.ones((2, N))
    expected = panda.torque(memory[:N].copy(), qd, qdd)
    np.testing.assert_array_equal(panda.torque(memory[:N], qd, qdd, out=memory[3:]), expected)
    memory = np.linspace(-1.0, 1.0, N + 3)
    expected = panda.gravity_torque(memory[:N].copy())
    np.testing.assert_array_equal(panda.gravity_torque(memory[:N], out=memory[3:]), expected)


def test_inputs_are_left_as_they_are_and_results_are_the_callers(panda: InverseDynamics) -> None:
    states = np.random.default_rng(3).normal(size=(3, 100, N))
    before = states.copy()
    first, one = panda.torque(*states), panda.torque(*states[:, 0])
    kept, kept_one = first.copy(), one.copy()
    panda.torque(*(2.0 * states))
    panda.torque(*(2.0 * states[:, 0]))
    np.testing.assert_array_equal(states, before)
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(one, kept_one)
    gravity = panda.gravity
    gravity[:] = 0.0
    np.testing.assert_array_equal(panda.gravity, (0.0, 0.0, -9.81))


def test_one_state_allocates_its_result_alone() -> None:
    panda = InverseDynamics(load_urdf(URDF / "panda.urdf"), backend="numba")
    q, qd, qdd, out = np.random.default_rng(4).normal(size=(4, N))
    calls = {"torque": lambda: panda.torque(q, qd, qdd), "out": lambda: panda.torque(q, qd, qdd, out=out)}
    peaks = {}
    for name, call in calls.items():
        call()
        tracemalloc.start()
        call()
        peaks[name] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peaks["out"] < 100  # bytes
    assert peaks["torque"] < 100 + out.nbytes + 128  # an array object


@pytest.mark.parametrize("name", ["panda_link7", "panda_link8"])
def test_payload_at_a_named_frame(panda: InverseDynamics, name: str) -> None:
    """At any frame that is fixed on the tip body, as with a new model."""
    state = np.random.default_rng(5).normal(size=(3, N))
    load = (1.5, (0.02, -0.03, 0.08), np.diag([0.01, 0.02, 0.015]))
    heavier = InverseDynamics(panda.robot.with_payload(*load, frame=name), backend="recursion")
    before = panda.torque(*state)
    panda.payload = (*load, name)
    np.testing.assert_allclose(panda.torque(*state), heavier.torque(*state), rtol=0, atol=1e-12)
    assert panda.potential_energy(state[0]) == pytest.approx(heavier.potential_energy(state[0]), abs=1e-12)
    panda.payload = None
    np.testing.assert_array_equal(panda.torque(*state), before)


def test_payload_is_what_it_was_when_it_was_set(panda: InverseDynamics) -> None:
    q, com = np.linspace(-1.0, 1.0, N), np.array([0.0, 0.0, 0.1])
    panda.payload = (2.0, com)
    held, energy = panda.gravity_torque(q), panda.potential_energy(q)
    com[:] = 9.0
    assert panda.payload is not None
    panda.payload.com[:] = 9.0
    np.testing.assert_array_equal(panda.gravity_torque(q), held)
    assert panda.potential_energy(q) == energy
    panda.payload = None


def tree(made: RandomRobot) -> RobotModel:
    robot = load_urdf(made.xml, friction=False)
    return robot if robot.tip is not None else replace(robot, tip=robot.bodies[-1].name)


@given(random_robots(max_joints=8, mimic=True))
@quick
def test_wrench_costs_what_virtual_work_says(made: RandomRobot) -> None:
    """τ = Jᵀ F for the F that the tip exerts, so −Jᵀ w for the wrench w that it feels."""
    robot = tree(made)
    dynamics = InverseDynamics(robot, backend="python")
    q, qd, qdd = made.rng.normal(size=(3, robot.n))
    wrench = made.rng.normal(scale=20.0, size=6)
    cost = dynamics.torque(q, qd, qdd, wrench) - dynamics.torque(q, qd, qdd)
    assert robot.tip is not None
    J = jacobian(robot, q, robot.tip, kind="body")
    np.testing.assert_allclose(
        cost, -J.T @ wrench, rtol=0, atol=1e-10 * max(1.0, np.abs(dynamics.torque(q, qd, qdd)).max())
    )
    np.testing.assert_allclose(dynamics.terms(q, qd, qdd, wrench).wrench, -J.T @ wrench, rtol=0, atol=1e-10)


@given(random_robots(max_joints=7, mimic=True))
@quick
def test_mass_matrix_is_that_of_the_bodies_jacobians(made: RandomRobot) -> None:
    """M = Σ m J_vᵀ J_v + J_ωᵀ I J_ω, with each body's Jacobian at its centre of mass."""
    robot = tree(made)
    q = made.rng.normal(size=robot.n)
    M = np.zeros((robot.n, robot.n))
    for body in robot.bodies:
        J = jacobian(robot, q, body.name)
        R = frame(robot, q, body.name)[:3, :3]
        arm = R @ body.com
        J_v = J[:3] - np.cross(arm, J[3:], axisb=0, axisc=0)
        M += body.mass * J_v.T @ J_v + J[3:].T @ R @ body.inertia @ R.T @ J[3:]
    np.testing.assert_allclose(InverseDynamics(robot, backend="python").mass_matrix(q), M, atol=1e-11 * np.abs(M).max())


@given(random_robots(max_joints=5, mimic=True))
@quick
def test_coriolis_matrix_is_the_christoffel_choice(made: RandomRobot) -> None:
    """C_ij = Σ_k ½ (∂M_ij/∂q_k + ∂M_ik/∂q_j − ∂M_jk/∂q_i) q̇_k, by central differences of M."""
    robot = tree(made)
    dynamics = InverseDynamics(robot, backend="python")
    q, qd = made.rng.normal(size=(2, robot.n))
    h = 1e-5
    steps = h * np.eye(robot.n)
    dM = (dynamics.mass_matrix(q + steps) - dynamics.mass_matrix(q - steps)) / (2 * h)  # dM[k, i, j] = ∂M_ij/∂q_k
    symbols = 0.5 * (dM.transpose(1, 2, 0) + dM.transpose(1, 0, 2) - dM)  # [i, j, k]
    scale = max(1.0, np.abs(dynamics.mass_matrix(q)).max() * np.abs(qd).max())
    np.testing.assert_allclose(dynamics.coriolis_matrix(q, qd), symbols @ qd, atol=1e-7 * scale)


def test_planar_arm_of_the_lecture() -> None:
    """5.5. Its formulas place the centres of mass at the links' ends, though the text says the middle."""
    m1, m2, l1, l2, i1, i2 = 2.0, 1.5, 0.5, 0.3, 0.04, 0.02
    arm = planar_arm((m1, m2), (l1, l2), (l1, l2), (i1, i2))
    for q2 in np.linspace(-3.0, 3.0, 7):
        m11 = (m1 + m2) * l1**2 + m2 * l2**2 + 2 * m2 * l1 * l2 * np.cos(q2) + i1 + i2
        m12 = m2 * l2**2 + m2 * l1 * l2 * np.cos(q2) + i2
        m22 = m2 * l2**2 + i2
        np.testing.assert_allclose(arm.mass_matrix([0.7, q2]), [[m11, m12], [m12, m22]], rtol=1e-13)
