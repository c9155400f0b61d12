"""The recursion itself as a kernel: nothing is prepared, every tree runs, slowly."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rnea_ros.dynamics.links import Layout, LinkSystem, joint_friction, rigid_body_torque, sign
from rnea_ros.dynamics.newton_euler import Functions, Scalar

Array = NDArray[np.float64]

FLOATS = Functions(math.sin, math.cos)
ARRAYS = Functions(np.sin, np.cos)
BLOCK = 256  # states at a time, so that a batch needs little memory


class RecursionKernel:
    """Torque with all run-time inputs, by running `newton_euler` on floats or on blocks of arrays.

    The functions return False where they do not take the arrays as they stand: see `kernels.Kernel`.
    """

    name = "recursion"
    tests_finite = False

    def __init__(self, system: LinkSystem) -> None:
        self._system = system
        self._layout = Layout(system.n)

    def single(self, q: Array, v: Array, a: Array, inputs: Array, out: Array) -> bool:
        """Torque of one state, arrays (n,)."""
        if not all(x.shape == (self._system.n,) and x.dtype == np.float64 for x in (q, v, a, out)):
            return False
        if not np.isfinite([q, v, a]).all():
            return False
        out[:] = self._run([q.tolist(), v.tolist(), a.tolist()], inputs, FLOATS, math.tanh, sign)
        return True

    def gravity(self, q: Array, inputs: Array, out: Array) -> bool:
        """Torque that holds one state (n,)."""
        rigid = inputs.copy()
        for share in (self._layout.wrench, self._layout.armature, self._layout.friction):
            rigid[share] = 0.0
        still = np.zeros(self._system.n)
        return self.single(q, still, still, rigid, out)

    def batch(self, q: Array, v: Array, a: Array, inputs: Array, out: Array) -> bool:
        """Torque of N states, finite arrays (N, n)."""
        for start in range(0, len(q), BLOCK):
            rows = slice(start, start + BLOCK)
            block = [list(np.ascontiguousarray(values[rows].T)) for values in (q, v, a)]
            for joint, torque in enumerate(self._run(block, inputs, ARRAYS, np.tanh, np.sign)):
                out[rows, joint] = torque
        return True

    def _run(
        self,
        state: Sequence[Sequence[Scalar]],
        inputs: Array,
        functions: Functions,
        tanh: Callable[[Scalar], Scalar],
        sign_of: Callable[[Scalar], Scalar],
    ) -> list[Scalar]:
        layout, (q, qd, qdd) = self._layout, state
        torques = rigid_body_torque(
            self._system,
            q,
            qd,
            qdd,
            inputs[layout.gravity].tolist(),
            inputs[layout.wrench].tolist(),
            inputs[layout.tip].tolist(),
            functions,
        )
        armature = inputs[layout.armature].tolist()
        friction = inputs[layout.friction].reshape(6, -1).T.tolist()
        return [
            torques[i] + armature[i] * qdd[i] + joint_friction(friction[i], qd[i], tanh, sign_of)
            for i in range(self._system.n)
        ]
