"""Algebra that holds for every robot: random trees with everything that a description may hold, judged by Pinocchio."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from pinocchio_judge import Judge, pin
from random_robots import RandomRobot, random_robot, random_robots

from rnea_ros import InverseDynamics, load_urdf
from rnea_ros.model.robot import Friction, RobotModel

quick = settings(max_examples=40, deadline=None)
seeds = st.integers(0, 2**32 - 1)


class Case:
    """A robot with random gravity and armature, its judge and a state."""

    def __init__(self, made: RandomRobot, backend: str = "python") -> None:
        self.rng = made.rng
        robot = load_urdf(made.xml, friction=False)
        if robot.tip is None:  # some branch carries payload and wrench
            robot = replace(robot, tip=robot.bodies[-1].name)
        self.robot: RobotModel = robot.with_armature(self.rng.uniform(0.0, 0.5, robot.n))
        self.gravity = self.rng.normal(scale=6.0, size=3)
        self.dynamics = InverseDynamics(self.robot, self.gravity, backend=backend)  # type: ignore[arg-type]
        self.judge = Judge(robot, made.xml)
        self.judge.model.gravity.linear = self.gravity
        self.q, self.qd, self.qdd = self.rng.normal(scale=[[1.5], [1.0], [3.0]], size=(3, robot.n))
        self.pin_q = self.judge.configuration(self.q)
        self.pin_qd, self.pin_qdd = self.judge.velocity(self.qd), self.judge.velocity(self.qdd)

    def wrench(self) -> np.ndarray:
        return self.rng.normal(scale=[30.0] * 3 + [5.0] * 3)


def assert_same(ours: np.ndarray, theirs: np.ndarray, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * max(1.0, float(np.abs(theirs).max())))


def symmetric(upper: np.ndarray) -> np.ndarray:
    return np.triu(upper) + np.triu(upper, 1).T


@given(random_robots(mimic=False))
@quick
def test_torque_matrices_and_regressor_equal_pinocchio(made: RandomRobot) -> None:
    check_against_pinocchio(Case(made))


@given(random_robots(min_joints=2, mimic=True))
@quick
def test_the_same_with_mimic_joints_folded(made: RandomRobot) -> None:
    """Pinocchio moves the joints independently; E maps our coordinates to all joints (see `Judge`)."""
    check_against_pinocchio(Case(made))


def test_the_same_compiled() -> None:
    for seed in (1, 2, 3):
        check_against_pinocchio(Case(random_robot(seed, joints=5, mimic=seed == 3), backend="numba"))


def check_against_pinocchio(case: Case) -> None:
    robot, dynamics, judge, E = case.robot, case.dynamics, case.judge, case.judge.E
    model, data, q, qd, qdd = judge.model, judge.data, case.q, case.qd, case.qdd
    armature = np.diag(robot.armature)

    rigid = judge.fold(pin.rnea(model, data, case.pin_q, case.pin_qd, case.pin_qdd))
    assert_same(dynamics.torque(q, qd, qdd), rigid + armature @ qdd)
    assert_same(dynamics.mass_matrix(q), E.T @ symmetric(pin.crba(model, data, case.pin_q)) @ E + armature)
    assert_same(dynamics.gravity_torque(q), judge.gravity_torque(q))
    coriolis = pin.computeCoriolisMatrix(model, data, case.pin_q, case.pin_qd)
    assert_same(dynamics.coriolis_torque(q, qd), E.T @ coriolis @ case.pin_qd)
    assert_same(dynamics.coriolis_matrix(q, qd) @ qd, E.T @ coriolis @ case.pin_qd)

    theirs = pin.computeJointTorqueRegressor(model, data, case.pin_q, case.pin_qd, case.pin_qdd)
    theirs = E.T @ np.reshape(theirs, (model.nv, -1))
    order = [model.getJointId(body.joint_name) - 1 for body in robot.bodies]
    theirs = theirs.reshape(robot.n, -1, 10)[:, order].reshape(robot.n, -1)
    regressor = dynamics.regressor(q, qd, qdd)
    assert_same(regressor, theirs)
    assert_same(regressor @ dynamics.inertial_parameters(), rigid)

    mass = sum(body.mass for body in robot.bodies)
    potential = pin.computePotentialEnergy(model, data, case.pin_q)
    assert abs(dynamics.potential_energy(q) - potential) < 1e-10 * max(1.0, mass * np.linalg.norm(case.gravity))
    kinetic = pin.computeKineticEnergy(model, data, case.pin_q, case.pin_qd) + 0.5 * qd @ armature @ qd
    assert abs(dynamics.kinetic_energy(q, qd) - kinetic) < 1e-10 * max(1.0, kinetic)


@given(random_robots())
@quick
def test_wrench_is_what_the_environment_exerts(made: RandomRobot) -> None:
    """τ = RNEA − J_bᵀ w: Pinocchio's fext, moved from the tip frame to the joint frame of the tip body."""
    case = Case(made)
    wrench = case.wrench()
    tip = case.robot.tip_frame
    forces = pin.StdVec_Force()
    for _ in range(case.judge.model.njoints):
        forces.append(pin.Force.Zero())
    joint = case.judge.model.getJointId(case.robot.bodies[tip.body].joint_name)
    forces[joint] = pin.SE3(np.array(tip.rotation), np.array(tip.translation)).act(pin.Force(wrench))
    theirs = pin.rnea(case.judge.model, case.judge.data, case.pin_q, case.pin_qd, case.pin_qdd, forces)
    expected = case.judge.fold(theirs) + case.robot.armature * case.qdd
    assert_same(case.dynamics.torque(case.q, case.qd, case.qdd, wrench), expected)
    trace = case.dynamics.trace(case.q, case.qd, case.qdd, wrench)
    assert_same(trace.torque, expected)


@given(random_robots(max_joints=8))
@quick
def test_mass_matrix_is_symmetric_positive_definite_and_of_unit_accelerations(made: RandomRobot) -> None:
    case = Case(made)
    M = case.dynamics.mass_matrix(case.q)
    np.testing.assert_array_equal(M, M.T)
    assert np.linalg.eigvalsh(M).min() > 0.0
    still = np.zeros(case.robot.n)
    held = case.dynamics.gravity_torque(case.q)
    for j, unit in enumerate(np.eye(case.robot.n)):
        assert_same(M[:, j], case.dynamics.torque(case.q, still, unit) - held)


@given(random_robots(max_joints=8))
@quick
def test_rate_of_mass_matrix_less_twice_coriolis_is_skew(made: RandomRobot) -> None:
    case = Case(made)
    h = 1e-6
    M_dot = case.dynamics.mass_matrix(case.q + h * case.qd) - case.dynamics.mass_matrix(case.q - h * case.qd)
    S = M_dot / (2 * h) - 2.0 * case.dynamics.coriolis_matrix(case.q, case.qd)
    size = max(1.0, np.abs(case.dynamics.mass_matrix(case.q)).max()) * max(1.0, np.abs(case.qd).max())
    assert np.abs(S + S.T).max() < 1e-7 * size
    assert abs(case.qd @ S @ case.qd) < 1e-7 * size


@given(random_robots(max_joints=8))
@quick
def test_power_balance(made: RandomRobot) -> None:
    """τ · q̇ = Ṫ + V̇ along any motion, by central differences of the energies."""
    case = Case(made)
    h = 1e-5

    def energy(t: float) -> float:
        q = case.q + t * case.qd + 0.5 * t * t * case.qdd
        qd = case.qd + t * case.qdd
        return case.dynamics.kinetic_energy(q, qd) + case.dynamics.potential_energy(q)

    power = case.dynamics.torque(case.q, case.qd, case.qdd) @ case.qd
    size = abs(energy(0.0)) + abs(power) + 1.0
    assert abs((energy(h) - energy(-h)) / (2 * h) - power) < 1e-6 * size


@given(random_robots(max_joints=8))
@quick
def test_gravity_is_the_gradient_of_potential_energy(made: RandomRobot) -> None:
    case = Case(made)
    h = 1e-6
    shifted = np.concatenate([case.q + h * np.eye(case.robot.n), case.q - h * np.eye(case.robot.n)])
    energies = case.dynamics.potential_energy(shifted).reshape(2, -1)
    gradient = (energies[0] - energies[1]) / (2 * h)
    size = max(1.0, np.abs(energies).max())
    np.testing.assert_allclose(case.dynamics.gravity_torque(case.q), gradient, atol=1e-8 * size)


@given(random_robots(max_joints=8))
@quick
def test_acceleration_inverts_torque(made: RandomRobot) -> None:
    case = Case(made)
    n = case.robot.n
    rows = case.rng.normal(scale=0.3, size=(6, n))
    case.dynamics = InverseDynamics(case.robot.with_friction(Friction(*np.abs(rows))), case.gravity, backend="python")
    wrench = case.wrench()
    tau = case.dynamics.torque(case.q, case.qd, case.qdd, wrench)
    condition = np.linalg.cond(case.dynamics.mass_matrix(case.q))
    found = case.dynamics.acceleration(case.q, case.qd, tau, wrench)
    np.testing.assert_allclose(found, case.qdd, atol=1e-14 * condition * max(1.0, np.abs(tau).max()) + 1e-10)


@given(random_robots(max_joints=8))
@quick
def test_f27_named_terms_add_up_and_gravity_holds_no_coriolis(made: RandomRobot) -> None:
    case = Case(made)
    n = case.robot.n
    robot = case.robot.with_friction(Friction(*np.abs(case.rng.normal(scale=0.3, size=(6, n)))))
    dynamics = InverseDynamics(robot, case.gravity, backend="python")
    dynamics.payload = (2.0, case.rng.normal(scale=0.1, size=3), 0.01 * np.eye(3))
    wrench = case.wrench()
    terms = dynamics.terms(case.q, case.qd, case.qdd, wrench)
    assert_same(terms.total, dynamics.torque(case.q, case.qd, case.qdd, wrench), 1e-12)
    faster = dynamics.terms(case.q, 3.0 * case.qd, -case.qdd, wrench)
    np.testing.assert_array_equal(faster.gravity, terms.gravity)
    assert_same(faster.coriolis, 9.0 * terms.coriolis)
    assert_same(faster.inertia, -terms.inertia)
    dynamics.payload = None
    assert_same(terms.gravity, dynamics.gravity_torque(case.q), 1e-12)
    assert_same(terms.coriolis, dynamics.coriolis_torque(case.q, case.qd), 1e-12)


@given(random_robots(max_joints=8, mimic=True))
@quick
def test_f24_payload_is_reversible_and_equals_a_heavier_model(made: RandomRobot) -> None:
    case = Case(made)
    before = case.dynamics.torque(case.q, case.qd, case.qdd)
    case.dynamics.payload = (0.0,)
    np.testing.assert_array_equal(case.dynamics.torque(case.q, case.qd, case.qdd), before)
    mass, com = 3.0, case.rng.normal(scale=0.2, size=3)
    inertia = np.diag([0.02, 0.03, 0.04])
    case.dynamics.payload = (mass, com, inertia)
    heavier = InverseDynamics(case.robot.with_payload(mass, com, inertia), case.gravity, backend="recursion")
    assert_same(case.dynamics.torque(case.q, case.qd, case.qdd), heavier.torque(case.q, case.qd, case.qdd), 1e-12)
    assert_same(case.dynamics.mass_matrix(case.q), heavier.mass_matrix(case.q), 1e-12)
    assert abs(case.dynamics.potential_energy(case.q) - heavier.potential_energy(case.q)) < 1e-9
    case.dynamics.payload = None
    np.testing.assert_array_equal(case.dynamics.torque(case.q, case.qd, case.qdd), before)


@given(random_robots(), seeds)
@quick
def test_one_state_and_many_agree_in_every_method(made: RandomRobot, seed: int) -> None:
    case = Case(made)
    dynamics, n = case.dynamics, case.robot.n
    q, qd, qdd = np.random.default_rng(seed).normal(size=(3, 5, n))
    for name, count in (
        ("torque", 3),
        ("gravity_torque", 1),
        ("coriolis_torque", 2),
        ("mass_matrix", 1),
        ("coriolis_matrix", 2),
        ("regressor", 3),
        ("acceleration", 3),
        ("kinetic_energy", 2),
        ("potential_energy", 1),
    ):
        method = getattr(dynamics, name)
        many = method(*(q, qd, qdd)[:count])
        for i in range(5):
            assert_same(many[i], method(*(x[i] for x in (q, qd, qdd)[:count])), 1e-9)


@given(random_robots(), seeds)
@quick
def test_specialised_code_equals_the_recursion(made: RandomRobot, seed: int) -> None:
    check_against_recursion(made, seed, "python")


def test_compiled_code_equals_the_recursion() -> None:
    for seed in (4, 5):
        check_against_recursion(random_robot(seed, joints=4, mimic=True), seed, "numba")


def check_against_recursion(made: RandomRobot, seed: int, backend: str) -> None:
    """With everything at once: friction of every kind at some joints, payload, a wrench in every state."""
    case = Case(made)
    rng = np.random.default_rng(seed)
    n = case.robot.n
    present = rng.random((6, n)) < 0.6
    robot = case.robot.with_friction(Friction(*(present * rng.uniform(0.1, 2.0, (6, n)))))
    q, qd, qdd = rng.normal(scale=2.0, size=(3, 70, n))
    wrenches = rng.normal(size=(70, 6))
    plain = InverseDynamics(robot, case.gravity, backend="recursion")
    special = InverseDynamics(robot, case.gravity, backend=backend)  # type: ignore[arg-type]
    for dynamics in (plain, special):
        dynamics.payload = (1.0, (0.0, 0.1, 0.2))
    assert_same(special.torque(q, qd, qdd), plain.torque(q, qd, qdd), 1e-11)
    expected = plain.torque(q, qd, qdd, wrenches)
    assert_same(special.torque(q, qd, qdd, wrenches), expected, 1e-11)
    for i in (0, 69):
        assert_same(special.torque(q[i], qd[i], qdd[i], wrenches[i]), expected[i], 1e-11)
        assert_same(special.gravity_torque(q[i]), plain.gravity_torque(q[i]), 1e-11)
