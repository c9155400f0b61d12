"""The recursion itself as a kernel: nothing is prepared, every tree runs, slowly."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rnea_ros.dynamics.links import Layout, LinkSystem, joint_friction, rigid_body_torque
from rnea_ros.dynamics.newton_euler import Functions

Array = NDArray[np.float64]

FLOATS = Functions(math.sin, math.cos)
ARRAYS = Functions(np.sin, np.cos)
BLOCK = 256  # states at a time, so that a batch needs little memory


def sign(v: float) -> float:
    return float(v > 0.0) - float(v < 0.0)


class RecursionKernel:
    """Torque with all run-time inputs, by running `newton_euler` on floats or on blocks of arrays."""

    def __init__(self, system: LinkSystem) -> None:
        self._system = system
        self._layout = Layout(system.n)

    def torque(self, q: Array, qd: Array, qdd: Array, inputs: Array) -> Array:
        """(n,) from (n,)."""
        return np.array(
            self._run([q.tolist(), qd.tolist(), qdd.tolist()], inputs, FLOATS, math.tanh, sign), dtype=np.float64
        )

    def batch(self, q: Array, qd: Array, qdd: Array, inputs: Array, out: Array) -> None:
        """(N, n) from (N, n) into `out`."""
        for start in range(0, len(q), BLOCK):
            rows = slice(start, start + BLOCK)
            block = [list(np.ascontiguousarray(values[rows].T)) for values in (q, qd, qdd)]
            for joint, torque in enumerate(self._run(block, inputs, ARRAYS, np.tanh, np.sign)):
                out[rows, joint] = torque

    def _run(self, state, inputs, functions, tanh, sign_of):  # type: ignore[no-untyped-def]
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
