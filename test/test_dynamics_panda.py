"""What is known of the Panda: its mass matrix, and a real one's log."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rnea_ros import InverseDynamics, load_urdf
from rnea_ros.model.robot import Friction

ROOT = Path(__file__).parents[1]
LOG = ROOT.parent / "shared" / "data" / "panda_real_log.csv"

# Gaz et al., IEEE RA-L 2019: amplitude Nm, shift rad/s, slope s/rad
SIGMOID = (
    (0.54615, 0.87224, 0.64068, 1.2794, 0.83904, 0.30301, 0.56489),
    (0.039533, 0.025882, -0.04607, 0.036194, 0.026226, -0.021047, 0.0035526),
    (5.1181, 9.0657, 10.136, 5.5903, 8.3469, 17.133, 10.336),
)


def with_friction() -> Friction:
    none = np.zeros(7)
    return Friction(none, none, none, *(np.array(row) for row in SIGMOID))


def test_mass_matrix_over_the_workspace() -> None:
    """Symmetric positive definite everywhere, independent of the first joint, and 0.0037 kg m² at the wrist."""
    robot = load_urdf(ROOT / "urdf" / "panda.urdf", friction=False)
    panda = InverseDynamics(robot)
    q = np.random.default_rng(6).uniform(robot.lower, robot.upper, (3000, 7))
    M = panda.mass_matrix(q)
    np.testing.assert_array_equal(M, M.transpose(0, 2, 1))
    assert np.linalg.eigvalsh(M).min() > 1e-3
    turned = q + np.array([0.7, 0, 0, 0, 0, 0, 0])
    np.testing.assert_allclose(panda.mass_matrix(turned), M, atol=1e-13)
    # what the wrist's drive feels while the other joints give way, 1 / (M⁻¹)₇₇, at its smallest
    effective = 1.0 / np.linalg.inv(M)[:, 6, 6]
    assert round(effective.min(), 4) == 0.0037


@pytest.mark.skipif(not LOG.exists(), reason="the robot's log is not beside this repository")
def test_a_real_robots_log() -> None:
    """Misfit of the measured torque, Nm RMS, without and with the friction term: the printed figures to two digits."""
    signal = pytest.importorskip("scipy.signal", reason="SciPy filters the log")
    log = np.loadtxt(LOG, delimiter=",", skiprows=1)
    q, qd, effort = log[:, 1:8], log[:, 8:15], log[:, 15:22]
    low_pass = signal.butter(5, 10.0, fs=1000.0, output="sos")

    def smooth(values: np.ndarray) -> np.ndarray:
        return signal.sosfiltfilt(low_pass, values, axis=0)

    qdd = smooth(np.gradient(qd, 1e-3, axis=0))
    robot = load_urdf(ROOT / "urdf" / "panda.urdf", friction=False)
    within = slice(200, -200)  # a zero-phase filter is not to be trusted at the ends

    def misfit(model: np.ndarray) -> np.ndarray:
        return np.sqrt(np.mean((smooth(model) - smooth(effort))[within] ** 2, axis=0))

    rigid = InverseDynamics(robot).torque(q, qd, qdd)
    full = InverseDynamics(robot.with_friction(with_friction())).torque(q, qd, qdd)
    np.testing.assert_array_equal(np.round(misfit(rigid), 2), [0.34, 0.62, 0.34, 0.62, 0.33, 0.17, 0.28])
    np.testing.assert_array_equal(np.round(misfit(full), 2), [0.25, 0.58, 0.23, 0.32, 0.14, 0.09, 0.06])


def test_friction_is_the_motor_torque_to_add() -> None:
    """Zero at rest, positive for positive velocity, and the formula of the identification."""
    robot = load_urdf(ROOT / "urdf" / "panda.urdf", friction=False).with_friction(with_friction())
    panda = InverseDynamics(robot)
    A, s, alpha = (np.array(row) for row in SIGMOID)
    for v in (-2.0, -0.3, 0.0, 0.3, 2.0):
        qd = np.full(7, v)
        expected = A / (1 + np.exp(-alpha * (v + s))) - A / (1 + np.exp(-alpha * s))
        np.testing.assert_allclose(panda.friction_torque(qd), expected, rtol=1e-12, atol=1e-14)
        assert np.all(np.sign(expected) == np.sign(v))
        still = np.zeros(7)
        rigid = InverseDynamics(robot.with_friction(Friction.none(7))).torque(still, qd, still)
        np.testing.assert_allclose(panda.torque(still, qd, still) - rigid, expected, rtol=0, atol=1e-12)
    assert np.isfinite(panda.friction_torque(np.full(7, 1e6))).all()
