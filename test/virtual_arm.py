"""The controller against a MuJoCo arm in virtual time: what tests of whole runs share.

The arm is built by MuJoCo's own URDF parser. A command acts from `delay` after the stamp of the state that it answers,
as over a network.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from rnea_ros.control.controller import Command, Controller
from rnea_ros.control.supervisor import Mode
from rnea_ros.control.trajectory import Point, TrajectoryRequest
from rnea_ros.model.urdf import load_urdf

URDF = Path(__file__).parent.parent / "urdf"
HOME = {
    "panda": np.array([0.0, -np.pi / 4, 0.0, -3 * np.pi / 4, 0.0, np.pi / 2, np.pi / 4]),
    "es5": np.array([0.0, 0.8, -1.2, 0.4, 0.5, 0.0]),
}
GAINS: dict[str, dict[str, Any]] = {
    "panda": {
        "feedforward_pd.kp": [100.0, 100.0, 100.0, 100.0, 40.0, 25.0, 12.0],
        "feedforward_pd.kd": [20.0, 20.0, 20.0, 20.0, 6.0, 4.0, 2.0],
        "gravity_compensation.damping": [1.0],
    },
    "es5": {
        "feedforward_pd.kp": [83.0, 110.0, 210.0, 40.0, 10.0, 0.65],
        "feedforward_pd.kd": [26.0, 30.0, 18.0, 2.0, 0.51, 0.032],
        "gravity_compensation.damping": [1.0, 1.0, 1.0, 0.3, 0.05, 0.003],
    },
}
MILLISECOND = 1_000_000
START = 1_000_000_000_000  # ns: when virtual time begins


def fresh(arm: VirtualArm) -> Command | None:
    """The state as it is now."""
    return arm.state()


class VirtualArm:
    """MuJoCo arm and controller, one millisecond a step. `effort` acts on the joints; `now` is virtual time, ns."""

    def __init__(
        self,
        robot: str = "panda",
        noise: float = 1e-5,
        delay: int = 1,
        mass_scale: float = 1.0,
        own_gravity: bool = False,
        description: str = "",
        **parameters: Any,
    ) -> None:
        """noise: of the encoder, rad; velocity noise is 100 times that per s. delay: steps. own_gravity: the hardware
        compensates gravity itself. description: another URDF of the robot, as text. parameters: with `__` for a dot."""
        self.robot = load_urdf(description or self.urdf(robot))
        values = {"gravity_source": "self", "history.seconds": 0.0, **GAINS[robot]}
        values.update({name.replace("__", "."): value for name, value in parameters.items()})
        self.controller = Controller(self.robot, values)
        spec = mujoco.MjSpec.from_string(description or self.urdf(robot).read_text())
        spec.option.timestep = 1e-3
        spec.option.disableflags = int(mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_LIMIT)
        self.model = spec.compile()
        self.model.dof_damping[:] = 0.0
        self.model.dof_frictionloss[:] = 0.0
        self.model.body_mass[:] *= mass_scale
        self.model.body_inertia[:] *= mass_scale
        self.data = mujoco.MjData(self.model)
        self.names = list(self.robot.joint_names)
        self.data.qpos[:] = HOME[robot]
        mujoco.mj_forward(self.model, self.data)
        self.noise, self.delay, self.own_gravity = noise, delay, own_gravity
        self.hardware_gravity: np.ndarray | None = None  # what the hardware believes; None: the truth
        self.command_loss = 0.0
        self.command_loss = 0.0
        self.random = np.random.default_rng(1)
        self.now = START
        self.effort: np.ndarray | None = None  # None: brakes on, the arm stands still
        self.push = np.zeros(self.robot.n)
        self._queue: list[tuple[int, np.ndarray]] = []  # when it acts, the effort
        self.commands: list[np.ndarray] = []  # every command that left, in order
        self.log: list[tuple[str, str]] = []
        self.rate_excess = 0.0  # largest step of the command beyond the rate limit, Nm

    @staticmethod
    def urdf(robot: str) -> Path:
        return URDF / f"{robot}.urdf"

    @property
    def q(self) -> np.ndarray:
        return np.array(self.data.qpos)

    @property
    def qd(self) -> np.ndarray:
        return np.array(self.data.qvel)

    @property
    def mode(self) -> Mode:
        return self.controller.supervisor.mode

    def measured(self) -> tuple[np.ndarray, np.ndarray]:
        n = self.robot.n
        return (
            self.q + self.noise * self.random.standard_normal(n),
            self.qd + 100.0 * self.noise * self.random.standard_normal(n),
        )

    def take(self, command: Command | None) -> None:
        """A command leaves: it is checked against every promise of the gate, and queued."""
        if command is None:
            return
        assert command.effort is not None
        effort = command.effort.copy()
        assert np.isfinite(effort).all()
        assert (np.abs(effort) <= self.controller.settings.effort_limit + 1e-9).all()
        if self.commands:
            step = np.abs(effort - self.commands[-1]) - self.controller.settings.effort_rate * 1e-3
            self.rate_excess = max(self.rate_excess, float(step.max()))
        self.commands.append(effort)
        if self.command_loss and self.random.random() < self.command_loss:
            return
        if self.command_loss and self.random.random() < self.command_loss:
            return
        self._queue.append((self.now + self.delay * MILLISECOND, effort))

    def state(self, stamp: int | None = None, **changes: Any) -> Command | None:
        """Deliver the present state; `changes` replace names, position, velocity or effort."""
        q, qd = self.measured()
        message = {"names": self.names, "position": q, "velocity": qd, "effort": [], **changes}
        command = self.controller.on_state(**message, stamp=self.now if stamp is None else stamp, arrival=self.now)
        self.controller.finish()
        return command

    def activate(self) -> None:
        for _ in range(30):
            self.step()
        self.take(self.controller.activate(self.now))

    def step(self, deliver: Callable[[VirtualArm], Command | None] | None = fresh) -> None:
        """One millisecond: state out, command in, physics. `deliver` None: no state arrives."""
        command = None if deliver is None else deliver(self)
        self.take(command)
        if (self.now // MILLISECOND) % 5 == 0:
            self.take(self.controller.tick(self.now))
        self.log += self.controller.take_messages()
        while self._queue and self._queue[0][0] <= self.now:
            self.effort = self._queue.pop(0)[1]
        if self.effort is None:
            self.now += MILLISECOND
            return
        self.data.qfrc_applied[:] = self.effort + self.push
        if self.own_gravity:
            self.data.qfrc_applied[:] += self._gravity()
        mujoco.mj_step(self.model, self.data)
        self.now += MILLISECOND

    def run(self, seconds: float, deliver: Callable[[VirtualArm], Command | None] | None = fresh) -> np.ndarray:
        """Steps for a while; returns the positions, (steps, n)."""
        positions = []
        for _ in range(round(seconds * 1000)):
            self.step(deliver)
            positions.append(self.q)
        return np.array(positions)

    def _gravity(self) -> np.ndarray:
        """What the hardware adds."""
        velocity, true = self.data.qvel.copy(), self.model.opt.gravity.copy()
        self.data.qvel[:] = 0.0
        if self.hardware_gravity is not None:
            self.model.opt.gravity[:] = self.hardware_gravity
        mujoco.mj_forward(self.model, self.data)
        gravity = self.data.qfrc_bias.copy()
        self.data.qvel[:] = velocity
        self.model.opt.gravity[:] = true
        return np.array(gravity)


def smooth_motion(names: list[str], start: np.ndarray, goal: np.ndarray, seconds: float) -> TrajectoryRequest:
    """A minimum-jerk motion from rest to rest, with all derivatives, from now on."""
    points = []
    for s in np.linspace(0.0, 1.0, 40):
        shape = 10 * s**3 - 15 * s**4 + 6 * s**5
        speed = (30 * s**2 - 60 * s**3 + 30 * s**4) / seconds
        change = (60 * s - 180 * s**2 + 120 * s**3) / seconds**2
        reach = goal - start
        points.append(Point(s * seconds, start + reach * shape, reach * speed, reach * change))
    return TrajectoryRequest(names, points)
