"""The numbers of the lesson on the manipulator equation (reference 002), examples 1 to 4 with their printed digits.

The arm comes from the lesson before it, which is not printed; the numbers below determine it: homogeneous rods of 3 and
2 kg, 0.5 and 0.4 m (β = m₂ L₁ l_c2 = 0.2).
"""

from __future__ import annotations

import numpy as np
import pytest
from planar_arm import planar_arm, rods

scipy_integrate = pytest.importorskip("scipy.integrate", reason="SciPy integrates the lesson's motions")

ARM = rods((3.0, 2.0), (0.5, 0.4))
FLAT = rods((3.0, 2.0), (0.5, 0.4), gravity=(0.0, 0.0, 0.0))
STILL = np.zeros(2)


def integrate(rate, start, duration: float, event=None):
    """The lesson's integrator and tolerances."""
    return scipy_integrate.solve_ivp(rate, (0.0, duration), start, "DOP853", rtol=1e-10, atol=1e-12, events=event)


def printed(value, digits: int) -> np.ndarray:
    return np.round(np.asarray(value), digits) + 0.0


def mass_rate(q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """Ṁ by a central difference along q̇, as the lesson takes it."""
    h = 1e-6
    return (FLAT.mass_matrix(q + h * qd) - FLAT.mass_matrix(q - h * qd)) / (2 * h)


def other_coriolis_matrix(q: np.ndarray, qd: np.ndarray) -> np.ndarray:
    """C', which yields the same C q̇ and is not the Christoffel choice."""
    h = -0.2 * np.sin(q[1])
    return np.array([[2 * h * qd[1], h * qd[1]], [-h * qd[0], 0.0]])


def test_the_arm_is_the_lessons() -> None:
    M = FLAT.mass_matrix([0.0, np.pi / 2])
    np.testing.assert_array_equal(printed(M, 4), [[0.8567, 0.1067], [0.1067, 0.1067]])
    np.testing.assert_array_equal(printed(ARM.gravity_torque([0.0, 0.0]), 2), [21.09, 3.92])


def test_example_1_two_valid_matrices() -> None:
    q, qd = np.deg2rad([30.0, 45.0]), np.array([1.0, -0.5])
    C, other, M_dot = FLAT.coriolis_matrix(q, qd), other_coriolis_matrix(q, qd), mass_rate(q, qd)
    np.testing.assert_array_equal(printed(C, 4), [[0.0707, -0.0707], [0.1414, 0.0]])
    np.testing.assert_array_equal(printed(other, 4), [[0.1414, 0.0707], [0.1414, 0.0]])
    np.testing.assert_array_equal(printed(M_dot, 4), [[0.1414, 0.0707], [0.0707, 0.0]])
    np.testing.assert_array_equal(printed(M_dot - 2 * C, 4), [[0.0, 0.2121], [-0.2121, 0.0]])
    np.testing.assert_array_equal(printed(M_dot - 2 * other, 4), [[-0.1414, -0.0707], [-0.2121, 0.0]])
    for matrix in (C, other):
        np.testing.assert_array_equal(printed(matrix @ qd, 4), [0.1061, 0.1414])
    np.testing.assert_array_equal(printed(FLAT.coriolis_torque(q, qd), 4), [0.1061, 0.1414])


def test_example_2_skew_symmetry_and_the_weaker_identity() -> None:
    rng = np.random.default_rng(7)
    table = [(0.529, -0.174), (0.428, -0.086), (0.058, -0.051)]
    for asymmetry, form in table:
        q, qd = rng.uniform(-np.pi, np.pi, 2), rng.uniform(-2, 2, 2)
        x = rng.standard_normal(2)
        S = mass_rate(q, qd) - 2 * FLAT.coriolis_matrix(q, qd)
        T = mass_rate(q, qd) - 2 * other_coriolis_matrix(q, qd)
        assert np.abs(S + S.T).max() < 1e-8
        assert abs(x @ S @ x) < 1e-8
        assert abs(qd @ S @ qd) < 1e-8
        assert abs(qd @ T @ qd) < 1e-8
        assert printed(np.abs(T + T.T).max(), 3) == asymmetry
        assert printed(x @ T @ x, 3) == form


def test_example_2_double_pendulum_of_point_masses() -> None:
    pendulum = planar_arm((1.0, 1.0), (1.0, 1.0), (1.0, 1.0), (0.0, 0.0))
    q, qd = np.array([0.3, 0.8]), np.array([1.0, -0.5])
    np.testing.assert_array_equal(printed(pendulum.coriolis_matrix(q, qd) @ qd, 3), [0.538, 0.717])


def test_example_3_inertia_couples_the_joints() -> None:
    q0, tau = np.deg2rad([0.0, 90.0]), np.array([2.0, 0.0])
    np.testing.assert_array_equal(printed(FLAT.acceleration(q0, STILL, tau), 3), [2.667, -2.667])

    def coupled(_t: float, state: np.ndarray) -> np.ndarray:
        return np.concatenate([state[2:], FLAT.acceleration(state[:2], state[2:], tau)])

    def uncoupled(_t: float, state: np.ndarray) -> np.ndarray:
        diagonal = np.diag(FLAT.mass_matrix(state[:2]))
        return np.concatenate([state[2:], (tau - FLAT.coriolis_torque(state[:2], state[2:])) / diagonal])

    start = np.concatenate([q0, STILL])
    for rate, degrees in ((coupled, 86.79), (uncoupled, 89.92)):
        assert printed(np.rad2deg(integrate(rate, start, 0.2).y[1, -1]), 2) == degrees


def test_example_3_centrifugal_opens_the_elbow() -> None:
    speed = 3.0

    def rate(_t: float, state: np.ndarray) -> np.ndarray:
        q2, qd2 = state
        bias = FLAT.coriolis_torque([0.0, q2], [speed, qd2])[1]
        return np.array([qd2, -bias / FLAT.mass_matrix([0.0, q2])[1, 1]])

    def straight(_t: float, state: np.ndarray) -> float:
        return float(state[0])

    motion = integrate(rate, np.array([np.pi / 2, 0.0]), 1.0, straight)
    assert printed(motion.t_events[0][0], 3) == 0.451
    assert np.rad2deg(motion.y[0]).min() == pytest.approx(-90.0, abs=0.5)
    held = FLAT.torque([0.0, np.pi / 2], [speed, 0.0], [0.0, 0.0])[1]
    assert printed(held, 10) == 1.8


def test_example_3_coriolis_speeds_the_shoulder_up() -> None:
    table = {
        "both": (3.716, 1.7628),
        "coriolis": (2.358, 1.0700),
        "centrifugal": (1.858, 0.8148),
        "none": (1.000, 0.3772),
    }
    start, end, speed = np.deg2rad(30.0), np.deg2rad(150.0), 2.0
    assert printed(FLAT.mass_matrix([0.0, start])[0, 0], 3) == 1.203
    assert printed(FLAT.mass_matrix([0.0, end])[0, 0], 3) == 0.510
    for terms, (final, momentum) in table.items():

        def rate(t: float, state: np.ndarray, terms: str = terms) -> np.ndarray:
            q = np.array([0.0, start + speed * t])
            both = FLAT.coriolis_torque(q, [state[0], speed])[0]
            centrifugal = FLAT.coriolis_torque(q, [0.0, speed])[0]
            share = {"both": both, "coriolis": both - centrifugal, "centrifugal": centrifugal, "none": 0.0}[terms]
            return np.array([-share / FLAT.mass_matrix(q)[0, 0]])

        motion = integrate(rate, np.array([1.0]), (end - start) / speed)
        assert printed(motion.y[0, -1], 3) == final, terms
        for position, rate_1, expected in ((start, 1.0, 1.7628), (end, motion.y[0, -1], momentum)):
            assert printed(FLAT.mass_matrix([0.0, position])[0] @ [rate_1, speed], 4) == expected, terms


def test_example_3_gravity_must_be_carried() -> None:
    np.testing.assert_array_equal(printed(ARM.acceleration([0, 0], [0, 0], [0, 0]), 2), [-26.16, 38.42])

    def falling(_t: float, state: np.ndarray) -> np.ndarray:
        return np.concatenate([state[2:], ARM.acceleration(state[:2], state[2:], STILL)])

    def carried(_t: float, state: np.ndarray) -> np.ndarray:
        return np.concatenate([state[2:], ARM.acceleration(state[:2], state[2:], ARM.gravity_torque(state[:2]))])

    fallen = integrate(falling, np.zeros(4), 0.2).y[:2, -1]
    np.testing.assert_array_equal(printed(np.rad2deg(fallen), 2), [-27.99, 35.31])
    np.testing.assert_allclose(integrate(carried, np.zeros(4), 2.0).y[:, -1], np.zeros(4), atol=1e-12)


@pytest.mark.parametrize(
    ("duration", "inertia", "velocity", "torque"),
    [
        (1.0, (14.60, 3.72), (4.35, 2.11), (26.59, 7.21)),
        (0.5, (58.42, 14.88), (17.39, 8.43), (70.40, 18.28)),
    ],
)
def test_example_4_terms_and_speed(
    duration: float, inertia: tuple[float, float], velocity: tuple[float, float], torque: tuple[float, float]
) -> None:
    t = np.linspace(0.0, duration, 2001)[:, None]
    start, end = np.deg2rad([-60.0, 30.0]), np.deg2rad([60.0, 120.0])
    w = np.pi / duration
    q = start + 0.5 * (end - start) * (1 - np.cos(w * t))
    qd, qdd = 0.5 * (end - start) * w * np.sin(w * t), 0.5 * (end - start) * w * w * np.cos(w * t)
    terms = ARM.terms(q, qd, qdd)

    def peak(values: np.ndarray) -> np.ndarray:
        return printed(np.abs(values).max(axis=0), 2)

    np.testing.assert_array_equal(peak(terms.inertia), inertia)
    np.testing.assert_array_equal(peak(terms.coriolis), velocity)
    np.testing.assert_array_equal(peak(terms.gravity), (19.18, 3.92))
    np.testing.assert_array_equal(peak(terms.total), torque)
    np.testing.assert_array_equal(peak(ARM.torque(q, qd, qdd)), torque)
