"""The control laws: what the command would be, before the gate.

    feedforward_pd     τ = RNEA(q_d⁺, q̇_d⁺, q̈_d⁺) + τ_f(q̇_d⁺) + Kp (q_d - q) + Kd (q̇_d - q̇) + Ki ∫(q_d - q) dt
    computed_torque    τ = RNEA(q, q̇, q̈_d⁺ + Kd (q̇_d - q̇) + Kp (q_d - q)) + τ_f(q̇_d⁺)
    floating           τ = g(q) - D q̇
    braking            τ = g(q) - D_b q̇

q, q̇ are measured; q_d is the reference at the state's stamp and q_d⁺ the one at the stamp plus the latency. τ is the
total torque on the joints. With the robot's own share h our command is what is left of it:

    self       h = 0
    hardware   h = g(q) (without the payload, where the robot was not told of it)
    residual   h = g of the gravity vector that the robot believes in

The share is *left out* where the law computes gravity: at q_d⁺ for feedforward_pd with gravity at the reference, at q
otherwise. It is never subtracted at one place and added at another.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rnea_ros.control.parameters import HARDWARE, SELF
from rnea_ros.control.settings import Settings
from rnea_ros.dynamics.inverse_dynamics import Backend, InverseDynamics
from rnea_ros.dynamics.links import friction_torque
from rnea_ros.model.robot import Friction, RobotModel

Array = NDArray[np.float64]


class Arm:
    """The robot as the laws see it: what it takes to move it, and what the robot itself carries of that."""

    def __init__(self, robot: RobotModel, settings: Settings, backend: Backend = "auto") -> None:
        self.robot = robot
        rigid = robot.with_friction(Friction.none(robot.n))  # friction is compensated at the reference velocity alone
        self.dynamics = InverseDynamics(rigid, gravity=settings.gravity, backend=backend)
        self._believed: InverseDynamics | None = None
        if settings["gravity_source"] != SELF:
            self._believed = InverseDynamics(rigid, gravity=settings.hardware_gravity, backend=backend)
        self._hardware = settings["gravity_source"] == HARDWARE
        self._knows_payload = bool(settings["payload.hardware_knows"])
        self._zero = np.zeros(robot.n)
        self._zero.setflags(write=False)
        self.set_payload(settings.payload)

    def set_payload(self, payload: tuple[float, Array, Array] | None) -> None:
        """mass kg, centre of mass (3,) m, inertia (3, 3) kg m² at the tip; None for nothing."""
        arguments = None
        if payload is not None:
            mass, com, inertia = payload
            arguments = (mass, com, inertia if inertia.any() else None)
        self.dynamics.payload = arguments
        if self._believed is not None:
            self._believed.payload = arguments if self._knows_payload else None
        self.carries_all: bool = self._hardware and (payload is None or self._knows_payload)

    def share(self, q: Array) -> Array:
        """h(q): what the robot adds to our command, (n,) Nm."""
        return self._zero if self._believed is None else self._believed.gravity_torque(q)

    def support(self, q: Array, share: Array) -> Array:
        """g(q) - h(q): what our command owes to gravity, (n,) Nm. `share` is h(q)."""
        if self.carries_all:
            return self._zero
        gravity = self.dynamics.gravity_torque(q)
        return gravity if self._believed is None else gravity - share

    def friction(self, velocity: Array) -> Array:
        return friction_torque(self.robot.friction, velocity)


class Laws:
    """The laws with their gains and the integral. `ahead` and `at` are reference states (3, n).

    After each evaluation these tell what the command is made of: `feedback` and `friction_torque` (n,) Nm, `motion`
    with the (q, q̇, q̈) whose inertial torque is in it, and `gravity_place` with the q whose gravity less the robot's
    share is in it; None where it is not.
    """

    def __init__(self, arm: Arm, settings: Settings) -> None:
        self.arm = arm
        n = arm.robot.n
        self.integral = np.zeros(n)  # Nm
        self.feedback = np.zeros(n)
        self.friction_torque = np.zeros(n)
        self.motion: tuple[Array, Array, Array] | None = None
        self.gravity_place: Array | None = None
        self._zero = np.zeros(n)
        self.take(settings)

    def take(self, settings: Settings) -> None:
        """Use other gains from the next evaluation on."""
        self.settings = settings
        assert settings.float_damping is not None and settings.braking_damping is not None
        self.float_damping, self.braking_damping = settings.float_damping, settings.braking_damping
        self._integrates = bool(settings.ki.any())
        self._friction = settings["friction_feedforward"] and not settings["hardware_friction"]
        self._gravity_at_reference = settings["gravity_at"] == "reference"
        self._feedforward = settings["feedforward"]
        self._computed = settings["law"] == "computed_torque"

    def restart(self) -> None:
        self.integral[:] = 0.0

    def moving(
        self,
        q: Array,
        qd: Array,
        at: Array,
        ahead: Array,
        share: Array,
        support: Array,
        scale: float,
        tracking: bool,
        wrench: Array | None,
    ) -> Array:
        """Command of the chosen law. scale: 0 to 1, size of the feedback after activation."""
        if self._computed:
            return self._computed_torque(q, qd, at, ahead, share, scale, wrench)
        return self._feedforward_pd(q, qd, at, ahead, support, scale, tracking, wrench)

    def floating(self, q: Array, qd: Array, support: Array) -> Array:
        return self._damped(self.float_damping, q, qd, support)

    def braking(self, q: Array, qd: Array, support: Array, share: float = 1.0) -> Array:
        """`share` of the braking damping."""
        return self._damped(share * self.braking_damping, q, qd, support)

    def supporting(self, q: Array, support: Array) -> Array:
        """Gravity support alone."""
        self.feedback[:] = 0.0
        self._record(None, q)
        return support

    def integrate(self, error: Array, period: float, clamped: NDArray[np.bool_]) -> None:
        """Ki ∫ e dt within its bound; a joint at its effort limit is not wound up further."""
        if not self._integrates:
            return
        step = self.settings.ki * error * period
        step[clamped & (step * self.feedback > 0.0)] = 0.0
        self.integral += step
        np.clip(self.integral, -self.settings.integral_limit, self.settings.integral_limit, self.integral)

    def _damped(self, damping: Array, q: Array, qd: Array, support: Array) -> Array:
        np.multiply(damping, qd, out=self.feedback)
        np.negative(self.feedback, out=self.feedback)
        self._record(None, q)
        return support + self.feedback

    def _record(
        self, motion: tuple[Array, Array, Array] | None, place: Array | None, friction: Array | None = None
    ) -> None:
        self.motion, self.gravity_place = motion, place
        if friction is not None and self._friction:
            self.friction_torque[:] = self.arm.friction(friction)
        else:
            self.friction_torque[:] = 0.0

    def _feedforward_pd(
        self,
        q: Array,
        qd: Array,
        at: Array,
        ahead: Array,
        support: Array,
        scale: float,
        tracking: bool,
        wrench: Array | None,
    ) -> Array:
        settings, dynamics = self.settings, self.arm.dynamics
        assert settings.kp is not None and settings.kd is not None
        feedback = self.feedback
        np.subtract(at[0], q, out=feedback)
        feedback *= settings.kp
        feedback += settings.kd * (at[1] - qd)
        feedback += self.integral
        if scale < 1.0:
            feedback *= scale
        if tracking and self._feedforward == "none":
            self._record(None, None)
            return feedback.copy()
        place = ahead[0] if self._gravity_at_reference else q
        if tracking and self._feedforward == "gravity":
            self._record(None, place)
            return feedback + (
                self.arm.support(place, self.arm.share(place)) if self._gravity_at_reference else support
            )
        self._record((ahead[0], ahead[1], ahead[2]), place, friction=ahead[1])
        model = dynamics.torque(ahead[0], ahead[1], ahead[2], wrench)
        if self._gravity_at_reference:
            model -= self.arm.share(place)
        else:
            model += support - dynamics.gravity_torque(ahead[0])
        model += feedback
        model += self.friction_torque
        return model

    def _computed_torque(
        self, q: Array, qd: Array, at: Array, ahead: Array, share: Array, scale: float, wrench: Array | None
    ) -> Array:
        settings = self.settings
        assert settings.computed_kp is not None and settings.computed_kd is not None
        acceleration = settings.computed_kp * (at[0] - q) + settings.computed_kd * (at[1] - qd)
        acceleration *= scale
        wanted = self.arm.dynamics.torque(q, qd, ahead[2] + acceleration, wrench)
        np.subtract(wanted, self.arm.dynamics.torque(q, qd, ahead[2], wrench), out=self.feedback)
        self._record((q, qd, ahead[2]), q, friction=ahead[1])
        return np.asarray(wanted - share + self.friction_torque)
