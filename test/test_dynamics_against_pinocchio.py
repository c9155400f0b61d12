"""Torque of the packaged robots on ten thousand states each, judged by Pinocchio and by MuJoCo."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pinocchio_judge import Judge, pin

from rnea_ros import InverseDynamics, load_urdf
from rnea_ros.model.robot import RobotModel

URDF = Path(__file__).parents[1] / "urdf"
FINGERS = {"panda_finger_joint1": 0.02}
CASES = {
    "es5": ("es5.urdf", {}),
    "panda": ("panda.urdf", {}),
    "panda with hand, fingers locked": ("panda_hand.urdf", FINGERS),
    "panda with hand, fingers free": ("panda_hand.urdf", {}),
}


def states(robot: RobotModel, count: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Positions within the limits, velocities to 3 and accelerations to 10 per second and joint."""
    rng = np.random.default_rng(seed)
    q = rng.uniform(np.maximum(robot.lower, -7.0), np.minimum(robot.upper, 7.0), (count, robot.n))
    return q, rng.uniform(-3.0, 3.0, q.shape), rng.uniform(-10.0, 10.0, q.shape)


def assert_close(ours: np.ndarray, theirs: np.ndarray, tolerance: float) -> None:
    """Largest error of a state, relative to its largest torque (to 1 Nm where that is smaller)."""
    scale = np.maximum(np.abs(theirs).max(axis=-1), 1.0)
    assert (np.abs(ours - theirs).max(axis=-1) / scale).max() < tolerance


@pytest.mark.parametrize("case", CASES)
def test_ten_thousand_states(case: str) -> None:
    file, locked = CASES[case]
    robot = load_urdf(URDF / file, locked=locked, friction=False)
    judge = Judge(robot, URDF / file)
    q, qd, qdd = states(robot, 10_000, seed=1)
    theirs = np.array(
        [
            judge.fold(
                pin.rnea(
                    judge.model, judge.data, judge.configuration(q[i]), judge.velocity(qd[i]), judge.velocity(qdd[i])
                )
            )
            for i in range(len(q))
        ]
    )
    compiled, plain = InverseDynamics(robot), InverseDynamics(robot, backend="python")
    assert_close(compiled.torque(q, qd, qdd), theirs, 1e-11)
    assert_close(plain.torque(q, qd, qdd), theirs, 1e-11)
    few = slice(0, 500)
    for dynamics in (compiled, plain, InverseDynamics(robot, backend="recursion")):
        one_by_one = np.array([dynamics.torque(*state) for state in zip(q[few], qd[few], qdd[few], strict=True)])
        assert_close(one_by_one, theirs[few], 1e-11)
        held = np.array([dynamics.gravity_torque(state) for state in q[few]])
        assert_close(held, np.array([judge.gravity_torque(state) for state in q[few]]), 1e-11)


@pytest.mark.parametrize("file", ["es5.urdf", "panda.urdf"])
def test_mujoco_as_second_judge(file: str) -> None:
    """mj_inverse with contacts, clamps and URDF damping off, armature on."""
    mujoco = pytest.importorskip("mujoco", reason="MuJoCo is the second judge")
    robot = load_urdf(URDF / file, friction=False)
    armature = np.linspace(0.02, 0.3, robot.n)
    # the default compiler settings of a URDF drop the base's inertia and fuse fixed links, which changes no torque
    model = mujoco.MjModel.from_xml_path(str(URDF / file))
    model.opt.disableflags |= (
        mujoco.mjtDisableBit.mjDSBL_CONTACT
        | mujoco.mjtDisableBit.mjDSBL_LIMIT
        | mujoco.mjtDisableBit.mjDSBL_FRICTIONLOSS
    )
    model.dof_damping[:] = 0.0
    model.dof_frictionloss[:] = 0.0
    model.dof_armature[:] = armature
    model.opt.gravity[:] = (0.4, -0.3, -9.81)
    data = mujoco.MjData(model)
    dynamics = InverseDynamics(robot.with_armature(armature), gravity=(0.4, -0.3, -9.81))
    q, qd, qdd = states(robot, 500, seed=2)
    theirs = np.empty_like(q)
    for i in range(len(q)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[i], qd[i], qdd[i]
        mujoco.mj_inverse(model, data)
        theirs[i] = data.qfrc_inverse
    # MuJoCo stores inertia as principal moments and a quaternion, which keeps about ten digits
    assert_close(dynamics.torque(q, qd, qdd), theirs, 1e-9)


def test_f25_armature_is_in_torque_matrix_and_both_judges() -> None:
    """Rotor inertia acts like inertia at the joint: in the torque, on the diagonal of M, and as Pinocchio has it."""
    robot = load_urdf(URDF / "panda.urdf", friction=False)
    armature = np.linspace(0.05, 0.4, robot.n)
    judge = Judge(robot, URDF / "panda.urdf")
    judge.model.armature = armature
    loaded, bare = InverseDynamics(robot.with_armature(armature)), InverseDynamics(robot)
    q, qd, qdd = (x[0] for x in states(robot, 1, seed=3))
    assert_close(loaded.torque(q, qd, qdd), pin.rnea(judge.model, judge.data, q, qd, qdd), 1e-12)
    np.testing.assert_allclose(loaded.torque(q, qd, qdd) - bare.torque(q, qd, qdd), armature * qdd, atol=1e-12)
    theirs = pin.crba(judge.model, judge.data, q)
    np.testing.assert_allclose(loaded.mass_matrix(q), np.triu(theirs) + np.triu(theirs, 1).T, atol=1e-12)
    np.testing.assert_allclose(loaded.terms(q, qd, qdd).armature, armature * qdd, rtol=1e-15)
