"""A simulated torque-driven arm: effort in, joint states out, in explicit time."""

from __future__ import annotations

import copy
import os
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import mujoco
import numpy as np
from numpy.typing import ArrayLike, NDArray

from rnea_ros.model.urdf import load_urdf
from rnea_ros.simulation.errors import SimulationError
from rnea_ros.simulation.forward_command import ForwardCommand
from rnea_ros.simulation.physics import PAYLOAD, Physics, build_model

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Imperfections:
    """What stands between an ideal arm and whoever drives it.

    encoder_noise: standard deviation of the measured position, rad or m.
    velocity_noise: standard deviation of the measured velocity, rad/s or m/s.
    delay: from a command's arrival to its torque, in whole steps.
    loss: fraction of the commands that never arrive.
    seed: of noise and loss.
    """

    encoder_noise: float = 0.0
    velocity_noise: float = 0.0
    delay: int = 0
    loss: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("encoder_noise", "velocity_noise", "delay"):
            if not (np.isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                raise SimulationError(f"{name}: {getattr(self, name)} must be finite and not negative")
        if not 0.0 <= self.loss <= 1.0:
            raise SimulationError(f"loss: {self.loss} must be within 0 and 1")


@dataclass
class JointState:
    """What the arm measures: (n,) each, in the order of the controlled joints; rad or m, rad/s or m/s, Nm or N."""

    position: Array = field(default_factory=lambda: np.zeros(0))
    velocity: Array = field(default_factory=lambda: np.zeros(0))
    effort: Array = field(default_factory=lambda: np.zeros(0))


class SimulatedArm:
    """A MuJoCo arm behind ros2_control's language; `step` advances its time by one time step.

    It stands still until the first command, then holds the newest command for ever (`ForwardCommand`). Torque beyond
    the description's effort limits is cut, as drives do; what is applied is the measured effort.

    initial_positions: (n,) rad or m; by default zero, or the nearest to it inside the position limits.
    adds_gravity: the arm adds the gravity torque of its own links at the measured position, as Franka does.
    tip: the link that carries the payload and takes a push that names no link; by default as in `load_urdf`.
    """

    def __init__(
        self,
        description: str | os.PathLike[str],
        joints: Sequence[str] | None = None,
        *,
        initial_positions: ArrayLike | None = None,
        tip: str | None = None,
        physics: Physics | None = None,
        imperfections: Imperfections | None = None,
        adds_gravity: bool = False,
    ) -> None:
        robot = load_urdf(description, joints, tip=tip)
        self.tip = robot.tip
        self.model, self.joint_names = build_model(description, robot.joint_names, self.tip, physics)
        self.effort_limits = robot.effort_limits
        self.imperfections = imperfections or Imperfections()
        self.adds_gravity = adds_gravity
        self.command = ForwardCommand(len(self.joint_names))
        self.time = 0.0  # s
        self.data = mujoco.MjData(self.model)
        self._random = np.random.default_rng(self.imperfections.seed)
        self._queue: deque[Array | None] = deque([None] * int(self.imperfections.delay))
        self._qpos = np.array([self.model.joint(name).qposadr[0] for name in self.joint_names])
        self._dof = np.array([self.model.joint(name).dofadr[0] for name in self.joint_names])
        self._applied = np.zeros(len(self.joint_names))
        self._push: tuple[int, Array] | None = None
        self._own = copy.copy(self.model)  # what the arm knows of itself
        self._static = mujoco.MjData(self._own)
        self.place(np.clip(0.0, robot.lower, robot.upper) if initial_positions is None else initial_positions)

    @property
    def timestep(self) -> float:
        """s"""
        return float(self.model.opt.timestep)

    @property
    def position(self) -> Array:
        """True joint positions (n,), rad or m."""
        return np.asarray(self.data.qpos[self._qpos])

    @property
    def velocity(self) -> Array:
        """True joint velocities (n,), rad/s or m/s."""
        return np.asarray(self.data.qvel[self._dof])

    @property
    def moving(self) -> bool:
        """Whether a first command has come; before, brakes hold the arm."""
        return self.command.effort is not None

    def place(self, positions: ArrayLike, velocities: ArrayLike = 0.0) -> None:
        """Put the joints there, by default at rest. (n,) rad or m, rad/s or m/s; mimic joints go with their leaders."""
        data, model, names = self.data, self.model, self.joint_names
        array = np.asarray(positions, dtype=np.float64)
        if array.shape != (len(names),) or not np.isfinite(array).all():
            raise SimulationError(f"initial_positions: expected {len(names)} finite values for {', '.join(names)}")
        data.qpos[self._qpos] = array
        data.qvel[self._dof] = velocities
        for equality in range(model.neq):
            follower, leader = model.eq_obj1id[equality], model.eq_obj2id[equality]
            offset, ratio = model.eq_data[equality, :2]
            data.qpos[model.jnt_qposadr[follower]] = offset + ratio * data.qpos[model.jnt_qposadr[leader]]
            data.qvel[model.jnt_dofadr[follower]] = ratio * data.qvel[model.jnt_dofadr[leader]]
        mujoco.mj_forward(self.model, self.data)

    def receive(self, effort: ArrayLike) -> None:
        """A command message arrives, unless it gets lost."""
        if self.imperfections.loss > 0.0 and self._random.random() < self.imperfections.loss:
            return
        self.command.receive(effort)

    def push(self, wrench: ArrayLike | None, link: str | None = None) -> None:
        """Let a wrench act until the next call: (6,) force N then moment Nm, at the link's origin and in its axes.

        None ends the push. link: the tip by default. Raises SimulationError for an unknown link.
        """
        if wrench is None:
            self._push = None
            return
        array = np.asarray(wrench, dtype=np.float64)
        if array.shape != (6,) or not np.isfinite(array).all():
            raise SimulationError("push: expected a finite wrench, force then moment")
        self._push = (self._body(link or self.tip), array)

    def set_payload(self, mass: float, com: ArrayLike = (0.0, 0.0, 0.0)) -> None:
        """Fix a point mass (kg) to the tip at `com` (3,) m in its frame; 0 drops it."""
        if self.tip is None:
            raise SimulationError("payload: the arm has several tips; choose one")
        if not (np.isfinite(mass) and mass >= 0.0):
            raise SimulationError(f"payload: mass {mass} kg must be finite and not negative")
        body = self.model.body(PAYLOAD).id
        self.model.body_mass[body] = mass
        self.model.body_ipos[body] = com
        mujoco.mj_setConst(self.model, mujoco.MjData(self.model))

    def step(self) -> None:
        """Advance by one time step under the newest command."""
        self.command.update()
        self.time += self.timestep
        self._queue.append(self.command.effort)
        effort = self._queue.popleft()
        if effort is None:
            return
        self._applied = np.clip(effort, -self.effort_limits, self.effort_limits)
        force = self.data.qfrc_applied
        force[:] = 0.0
        force[self._dof] = self._applied + (self.gravity_torque() if self.adds_gravity else 0.0)
        if self._push is not None:
            self._add_push(*self._push)
        mujoco.mj_step(self.model, self.data)

    def state(self) -> JointState:
        """What the sensors say now."""
        noise = self.imperfections
        state = JointState(self.position.copy(), self.velocity.copy(), self._applied.copy())
        if noise.encoder_noise:
            state.position += noise.encoder_noise * self._random.standard_normal(len(self.joint_names))
        if noise.velocity_noise:
            state.velocity += noise.velocity_noise * self._random.standard_normal(len(self.joint_names))
        return state

    def gravity_torque(self) -> Array:
        """Torque that carries the arm's own weight where it stands (n,), Nm or N, as MuJoCo has it; no payload."""
        self._static.qpos[:] = self.data.qpos
        mujoco.mj_fwdPosition(self._own, self._static)
        result = np.zeros(self._own.nv)
        mujoco.mj_rne(self._own, self._static, 0, result)
        return np.asarray(result[self._dof])

    def _body(self, link: str | None) -> int:
        if link is None:
            raise SimulationError("push: the arm has several tips; name the link in header.frame_id")
        body = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_BODY, link)
        if body < 0:
            raise SimulationError(f"push: unknown link {link!r}")
        return int(body)

    def _add_push(self, body: int, wrench: Array) -> None:
        rotation = self.data.xmat[body].reshape(3, 3)
        force, moment, origin = rotation @ wrench[:3], rotation @ wrench[3:], self.data.xpos[body]
        mujoco.mj_applyFT(self.model, self.data, force, moment, origin, body, self.data.qfrc_applied)
