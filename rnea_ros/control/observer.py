"""External torque from the generalised momentum (De Luca, Albu-Schäffer, Haddadin, Hirzinger, IROS 2006).

    p = M(q) q̇          ṗ = τ + Cᵀ(q, q̇) q̇ - g(q) + τ_ext
    r = K_O [p - p(0) - ∫ (τ + Cᵀ q̇ - g + r) dt]         ->  ṙ = K_O (τ_ext - r)

r is the external torque behind a low-pass of bandwidth K_O. Cᵀ q̇ = Ṁ q̇ - C q̇, and Ṁ q̇ is the derivative of M(q) v along
q̇ for a v that stands still, taken by central differences. All of it comes from the inverse dynamics, without
a matrix.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rnea_ros.control.laws import Arm

Array = NDArray[np.float64]

BANDWIDTH = 30.0  # K_O, 1/s
INTERVAL = 4_000_000  # ns between updates
STEP = 1e-4  # s along q̇ for the central difference
SETTLING = 0.2  # s until the estimate counts


class MomentumObserver:
    """Estimates the external torque (n,), Nm, positive along the joint; joint friction is part of it."""

    def __init__(self, arm: Arm) -> None:
        n = arm.robot.n
        self.arm = arm
        self.external = np.zeros(n)
        self._integral = np.zeros(n)
        self._torque, self._cycles = np.zeros(n), 0
        self._started: int | None = None
        self._last = 0

    @property
    def settled(self) -> bool:
        """Whether enough time has passed since the last beginning for the estimate to count."""
        return self._started is not None and (self._last - self._started) * 1e-9 > SETTLING

    def restart(self) -> None:
        self._started = None
        self.external[:] = 0.0
        self._torque[:] = 0.0
        self._cycles = 0

    def update(self, stamp: int, q: Array, qd: Array, torque: Array) -> None:
        """A cycle with the total joint torque that acts from now on. The estimate follows every few milliseconds."""
        if self._started is not None and stamp - self._last < INTERVAL:
            self._torque += torque
            self._cycles += 1
            return
        momentum, drift = self._momentum_and_drift(q, qd)
        if self._started is None or stamp - self._last > 20 * INTERVAL:
            self._started = stamp
            self._integral[:] = momentum
            self.external[:] = 0.0
        else:
            span = (stamp - self._last) * 1e-9
            acting = self._torque / max(self._cycles, 1)
            # r is taken at the end of the step, so that the filter is stable for any K_O and span
            self._integral += (acting + drift) * span
            residual = momentum - self._integral
            self.external[:] = BANDWIDTH * residual / (1.0 + BANDWIDTH * span)
            self._integral += self.external * span
        self._last = stamp
        self._torque[:] = torque
        self._cycles = 1

    def _momentum_and_drift(self, q: Array, qd: Array) -> tuple[Array, Array]:
        """p = M q̇, and Cᵀ q̇ - g."""
        dynamics = self.arm.dynamics
        zero = np.zeros_like(q)
        gravity = dynamics.gravity_torque(q)
        momentum = dynamics.torque(q, zero, qd) - gravity
        ahead, behind = q + STEP * qd, q - STEP * qd
        later = dynamics.torque(ahead, zero, qd) - dynamics.gravity_torque(ahead)
        earlier = dynamics.torque(behind, zero, qd) - dynamics.gravity_torque(behind)
        return momentum, (later - earlier) / (2.0 * STEP) - dynamics.coriolis_torque(q, qd) - gravity
