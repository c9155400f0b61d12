"""The numbers of the page on Newton-Euler inverse dynamics (reference 000): ES5, its vectors, and the planar 2R arm."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from planar_arm import planar_arm, rods

from rnea_ros import InverseDynamics, frame, load_urdf
from rnea_ros.dynamics.links import link_system, rigid_body_torque
from rnea_ros.dynamics.newton_euler import transpose
from rnea_ros.dynamics.recursion_backend import FLOATS

ROOT = Path(__file__).parents[1]
VECTORS = ROOT.parent / "shared" / "vectors" / "es5.json"
WORKED_Q = np.deg2rad([0.0, 45.0, 45.0, 0.0, 90.0, 0.0])
WORKED_QD = np.array([0.5, 0.0, 0.0, 0.0, 0.0, 0.0])
ZERO = np.zeros(6)

# "Rekurencja w przód": ω, a, a_C and F_C of links 1 to 3, four decimals
PRINTED_LINKS = {
    "link_1": ((0.0, 0.0, 0.5), (0.0, 0.0, 9.81), (0.0, 0.0020, 9.81), (0.0, 0.0079, 38.5631)),
    "link_2": (
        (0.3536, 0.3536, 0.0),
        (6.9367, 6.9367, 0.0),
        (6.9108, 6.9626, -0.0310),
        (72.1630, 72.7034, -0.3237),
    ),
    "link_3": ((0.5, 0.0, 0.0), (9.81, 0.0751, 0.0), (9.81, 0.0751, -0.0045), (27.9193, 0.2138, -0.0128)),
}
PRINTED_TORQUE = (0.0, 31.2022, -1.3255, -1.4497, 0.0010, 0.0)


@pytest.fixture(scope="module")
def es5() -> InverseDynamics:
    return InverseDynamics(load_urdf(ROOT / "urdf" / "es5.urdf", friction=False))


def test_worked_example_every_printed_digit(es5: InverseDynamics) -> None:
    """'Wzorzec liczbowy - pełny rachunek dla jednej trajektorii (6-DOF ES5)'."""
    trace = es5.trace(WORKED_Q, WORKED_QD, ZERO)
    for name, printed in PRINTED_LINKS.items():
        link = trace[name]
        ours = (link.omega, link.a, link.a_com, link.force)
        np.testing.assert_allclose(np.round(ours, 4), printed, rtol=0, atol=1e-9, err_msg=name)
    np.testing.assert_allclose(np.round(trace.torque, 4), PRINTED_TORQUE, rtol=0, atol=1e-9)
    np.testing.assert_allclose(np.round(es5.torque(WORKED_Q, WORKED_QD, ZERO), 4), PRINTED_TORQUE, rtol=0, atol=1e-9)


@pytest.mark.skipif(not VECTORS.exists(), reason="the vectors are not beside this repository")
def test_worked_example_every_vector(es5: InverseDynamics) -> None:
    vectors = json.loads(VECTORS.read_text())["worked_example"]
    trace = es5.trace(np.deg2rad(vectors["q_deg"]), vectors["qd"], vectors["qdd"])
    names = {
        "omega": "omega",
        "alpha": "alpha",
        "v": "v",
        "a": "a",
        "vCom": "v_com",
        "aCom": "a_com",
        "forceInertial": "force",
        "momentInertial": "moment",
    }
    for link, expected in zip(trace.links.values(), vectors["links"], strict=True):
        for theirs, ours in names.items():
            np.testing.assert_allclose(getattr(link, ours), expected[theirs], rtol=1e-12, atol=1e-12, err_msg=ours)
    for link, expected in zip(trace.links.values(), vectors["joints"], strict=True):
        np.testing.assert_allclose(link.joint_force, expected["force"], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(link.joint_moment, expected["moment"], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(link.joint_torque, expected["torque"], rtol=1e-12, atol=1e-12)


@pytest.mark.skipif(not VECTORS.exists(), reason="the vectors are not beside this repository")
@pytest.mark.parametrize("backend", ["auto", "python", "recursion"])
def test_twenty_states(backend: str) -> None:
    es5 = InverseDynamics(load_urdf(ROOT / "urdf" / "es5.urdf", friction=False), backend=backend)  # type: ignore[arg-type]
    for state in json.loads(VECTORS.read_text())["states"]:
        torque = es5.torque(state["q"], state["qd"], state["qdd"])
        np.testing.assert_allclose(torque, state["tau"], rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(es5.gravity_torque(state["q"]), state["gravity"], rtol=1e-12, atol=1e-12)


def test_diagnosis_of_the_direction_of_rotation(es5: InverseDynamics) -> None:
    """'Test diagnostyczny': q = (π/2, 0, ..., 0) at rest; with the right Rᵀ gravity torque goes with the lever arms."""
    q = np.array([np.pi / 2, 0.0, 0.0, 0.0, 0.0, 0.0])
    torque = es5.torque(q, ZERO, ZERO)
    for joint in (1, 2):
        pivot = frame(es5.robot, q, es5.robot.bodies[joint].name)[:3, 3]
        moment = 0.0
        for body in es5.robot.bodies[joint:]:
            pose = frame(es5.robot, q, body.name)
            moment += 9.81 * body.mass * ((pose[:3, :3] @ body.com + pose[:3, 3]) - pivot)[1]  # the arm lies along y
        assert torque[joint] == pytest.approx(moment, rel=1e-12)
    # The slip that the test is for is told apart: every rotation the other way round
    system = link_system(es5.robot)
    slipped = [type(link)(**{**vars(link), "rotation": transpose(link.rotation)}) for link in system.links]
    wrong = rigid_body_torque(
        type(system)(**{**vars(system), "links": tuple(slipped)}),
        q.tolist(),
        [0.0] * 6,
        [0.0] * 6,
        (0, 0, -9.81),
        None,
        None,
        FLOATS,
    )
    assert abs(wrong[1] - torque[1]) > 1.0


def test_dynamic_part_grows_with_the_square_of_speed(es5: InverseDynamics) -> None:
    """'Eksperyment 1' and '3': twice the speed, four times the torque that is not gravity."""
    q = np.array([0.0, np.pi / 2, 0.0, 0.0, 0.0, 0.0])
    qd = np.array([0.6, -0.4, 0.9, 0.3, -0.7, 0.5])

    def dynamic(scale: float) -> np.ndarray:
        return es5.torque(q, scale * qd, ZERO) - es5.torque(q, ZERO, ZERO)

    for scale in (2.0, 3.0, 5.0):
        np.testing.assert_allclose(dynamic(scale), scale**2 * dynamic(1.0), rtol=1e-10, atol=1e-10)
    flat = np.zeros(6)
    spin = np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    once, twice = (es5.torque(flat, rate * spin, ZERO) - es5.gravity_torque(flat) for rate in (1.0, 2.0))
    np.testing.assert_allclose(twice, 4.0 * once, rtol=1e-10, atol=1e-12)


def test_a_kilogram_at_eighty_centimetres_adds_eight_newton_metres(es5: InverseDynamics) -> None:
    """'ciężar 1 kg na końcu robota o zasięgu 0.8 m daje +8 Nm', and linearly in the mass."""
    q = np.zeros(6)
    pose = frame(es5.robot, q, "link_6")
    point = pose[:3, :3].T @ (np.array([0.8, 0.0, 0.0]) - pose[:3, 3])
    before = es5.gravity_torque(q)
    added = []
    for mass in (1.0, 2.0):
        es5.payload = (mass, point)
        added.append(es5.gravity_torque(q) - before)
    es5.payload = None
    assert round(added[0][1]) == 8
    assert added[0][1] == pytest.approx(9.81 * 0.8, rel=1e-12)
    np.testing.assert_allclose(added[1], 2.0 * added[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(es5.gravity_torque(q), before)


M1, M2, L1, L2 = 3.1, 1.7, 0.6, 0.4


def test_planar_statics_from_the_gradient_of_potential_energy() -> None:
    """'Sanity check - statyka z gradientu energii potencjalnej'."""
    arm = rods((M1, M2), (L1, L2))
    for q1, q2 in np.random.default_rng(4).uniform(-3, 3, (50, 2)):
        tau2 = 0.5 * M2 * 9.81 * L2 * np.cos(q1 + q2)
        tau1 = (0.5 * M1 + M2) * 9.81 * L1 * np.cos(q1) + tau2
        np.testing.assert_allclose(arm.torque([q1, q2], [0, 0], [0, 0]), [tau1, tau2], rtol=1e-12, atol=1e-13)


def test_planar_full_dynamics_by_hand() -> None:
    """'Wzorzec ręczny - 2R planarny manipulator': the page's vectors in the base frame, and its torques."""
    arm = rods((M1, M2), (L1, L2))
    for q1, q2, w1, w2, e1, e2 in np.random.default_rng(5).uniform(-3, 3, (50, 6)):
        u1 = np.array([np.cos(q1), np.sin(q1)])
        u12 = np.array([np.cos(q1 + q2), np.sin(q1 + q2)])
        turn = np.array([[0.0, -1.0], [1.0, 0.0]])  # ẑ ×
        lift = np.array([0.0, 9.81])
        a_c1 = 0.5 * L1 * (e1 * turn @ u1 - w1**2 * u1)
        a_2 = 2.0 * a_c1
        a_c2 = a_2 + 0.5 * L2 * ((e1 + e2) * turn @ u12 - (w1 + w2) ** 2 * u12)
        f2 = M2 * (a_c2 + lift)
        n2 = M2 * L2**2 / 12 * (e1 + e2) + np.cross([*(0.5 * L2 * u12), 0.0], [*f2, 0.0])[2]
        own = np.cross([*(0.5 * L1 * u1), 0.0], [*(M1 * (a_c1 + lift)), 0.0])[2]
        n1 = M1 * L1**2 / 12 * e1 + n2 + own + np.cross([*(L1 * u1), 0.0], [*f2, 0.0])[2]
        ours = arm.torque([q1, q2], [w1, w2], [e1, e2])
        np.testing.assert_allclose(ours, [n1, n2], rtol=1e-11, atol=1e-12)


def test_computed_torque_demonstration() -> None:
    """'PID-only vs PID + NE-feedforward': 489.6 mrad without and 2.7 mrad with feed-forward at Kp 50, Kd 10."""
    arm = planar_arm((1.0, 1.0), (0.5, 0.5), (0.5, 0.5), (0.0, 0.0))
    start, target = np.array([np.pi / 4, -np.pi / 4]), np.array([3 * np.pi / 4, np.pi / 2])
    period, step = 2.0, 0.002

    def desired(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        w = 2 * np.pi / period
        half = 0.5 * (target - start)
        return start + half * (1 - np.cos(w * t)), half * w * np.sin(w * t), half * w * w * np.cos(w * t)

    def largest_error(feed_forward: bool) -> float:
        q, qd, _ = desired(0.0)
        largest = 0.0
        for k in range(round(period / step)):
            q_d, qd_d, qdd_d = desired(k * step)
            largest = max(largest, float(np.linalg.norm(q_d - q)))
            tau = 50.0 * (q_d - q) + 10.0 * (qd_d - qd)
            if feed_forward:
                tau = tau + arm.torque(q_d, qd_d, qdd_d)
            state = np.concatenate([q, qd])
            k1 = rate(state, tau)
            k2 = rate(state + 0.5 * step * k1, tau)
            k3 = rate(state + 0.5 * step * k2, tau)
            k4 = rate(state + step * k3, tau)
            state = state + step / 6.0 * (k1 + 2 * k2 + 2 * k3 + k4)
            q, qd = state[:2], state[2:]
        return 1e3 * largest

    def rate(state: np.ndarray, tau: np.ndarray) -> np.ndarray:
        return np.concatenate([state[2:], arm.acceleration(state[:2], state[2:], tau)])

    assert f"{largest_error(feed_forward=False):.1f}" == "489.6"
    assert f"{largest_error(feed_forward=True):.1f}" == "2.7"
