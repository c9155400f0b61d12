"""Pinocchio as the judge of our models: the same description, loaded by its own parser, states and torques mapped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from rnea_ros.model.robot import RobotModel

pin = pytest.importorskip("pinocchio", reason="Pinocchio (pip install pin) is the judge of these tests")


class Judge:
    """A Pinocchio model of `description` (path or XML) and the map from our coordinates to its own.

    Pinocchio is told to ignore mimic: its joints then move independently, and with its position s = E q + s₀ of all
    joints the torque on our coordinates is Eᵀ τ. Joints that our model locks are locked by `pin.buildReducedModel`.
    """

    def __init__(self, robot: RobotModel, description: str | Path) -> None:
        text = str(description)
        full = pin.buildModelFromXML(text) if text.lstrip().startswith("<") else pin.buildModelFromUrdf(text)
        self.robot = robot
        self.full = full
        self.model = reduced(full, robot.locked)
        self.data = self.model.createData()
        self.E = np.zeros((self.model.nv, robot.n))
        self.s0 = np.zeros(self.model.nv)
        for body in robot.bodies:
            row = self.model.joints[self.model.getJointId(body.joint_name)].idx_v
            self.E[row, body.joint] = body.ratio
            self.s0[row] = body.offset
        assert self.model.nv == len(robot.bodies)

    def configuration(self, q: np.ndarray) -> np.ndarray:
        """Pinocchio's q, with (cos, sin) for continuous joints."""
        return pin.integrate(self.model, pin.neutral(self.model), self.E @ np.asarray(q) + self.s0)

    def velocity(self, qd: np.ndarray) -> np.ndarray:
        return self.E @ np.asarray(qd)

    def fold(self, tau: np.ndarray) -> np.ndarray:
        """Torque on our coordinates from Pinocchio's torque on all joints."""
        return self.E.T @ tau

    def placement(self, q: np.ndarray, frame: str) -> np.ndarray:
        pin.framesForwardKinematics(self.model, self.data, self.configuration(q))
        return self.data.oMf[self.model.getFrameId(frame, pin.FrameType.BODY)].homogeneous

    def jacobian(self, q: np.ndarray, frame: str, reference: pin.ReferenceFrame) -> np.ndarray:
        index = self.model.getFrameId(frame, pin.FrameType.BODY)
        full = pin.computeFrameJacobian(self.model, self.data, self.configuration(q), index, reference)
        return full.reshape(6, self.model.nv) @ self.E

    def gravity_torque(self, q: np.ndarray) -> np.ndarray:
        return self.fold(pin.computeGeneralizedGravity(self.model, self.data, self.configuration(q)))

    @property
    def total_mass(self) -> float:
        """Mass of everything, the base included, kg."""
        return float(sum(inertia.mass for inertia in self.model.inertias))


def reduced(full: pin.Model, locked: Mapping[str, float]) -> pin.Model:
    if not locked:
        return full
    velocity = np.zeros(full.nv)
    for name, position in locked.items():
        velocity[full.joints[full.getJointId(name)].idx_v] = position
    reference = pin.integrate(full, pin.neutral(full), velocity)
    return pin.buildReducedModel(full, [full.getJointId(name) for name in locked], reference)
