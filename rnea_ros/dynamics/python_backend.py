"""The specialised code as plain Python for one state, and over NumPy arrays for many."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnea_ros.dynamics.array_source import array_source
from rnea_ros.dynamics.emission import single_source
from rnea_ros.dynamics.expression import Program
from rnea_ros.dynamics.links import sign

Array = NDArray[np.float64]

FLOAT = np.dtype(np.float64)
BLOCK = 1024  # states: a block's workspace of some fifty rows stays in the second-level cache


class PythonKernel:
    """Straight-line code of one robot. Each function returns False where it does not take the input as it stands."""

    name = "python"
    tests_finite = False

    def __init__(self, n: int, rigid: Program, drive: Program, gravity: Program) -> None:
        self._n = n
        self._programs = (rigid, drive)
        self._gravity_program = gravity

    @cached_property
    def single(self) -> Callable[[Any, Any, Any, Array, Array], bool]:
        """single(q, v, a, inputs, out): torque of one state, arrays (n,)."""
        kernel = _function(single_source("kernel", "qva", self._n, self._programs))
        shape = (self._n,)

        def single(q: Any, v: Any, a: Any, inputs: Array, out: Array) -> bool:
            if not (q.shape == v.shape == a.shape == out.shape == shape):
                return False
            if not (q.dtype is v.dtype is a.dtype is out.dtype is FLOAT):
                return False
            q, v, a = q.tolist(), v.tolist(), a.tolist()
            if not (isfinite(sum(q) + sum(v) + sum(a)) or all(map(isfinite, (*q, *v, *a)))):
                return False
            out[:] = kernel(q, v, a, inputs.tolist())
            return True

        return single

    @cached_property
    def gravity(self) -> Callable[[Any, Array, Array], bool]:
        """gravity(q, inputs, out): torque that holds one state (n,)."""
        kernel = _function(single_source("kernel", "q", self._n, [self._gravity_program]))
        shape = (self._n,)

        def gravity(q: Any, inputs: Array, out: Array) -> bool:
            if not (q.shape == out.shape == shape and q.dtype is out.dtype is FLOAT):
                return False
            q = q.tolist()
            if not (isfinite(sum(q)) or all(map(isfinite, q))):
                return False
            out[:] = kernel(q, inputs.tolist())
            return True

        return gravity

    @cached_property
    def batch(self) -> Callable[[Array, Array, Array, Array, Array], bool]:
        """batch(q, v, a, inputs, out): torque of N states, C-contiguous float64 arrays (N, n) that are finite."""
        source = array_source("kernel", self._programs)
        names: dict[str, Any] = {name: getattr(np, name) for name in _UFUNC_NAMES}
        kernel = _function(source.text, names | source.constants)

        def batch(q: Array, v: Array, a: Array, inputs: Array, out: Array) -> bool:
            states, n = q.shape
            workspace = np.empty((source.rows, min(BLOCK, states)))
            state, torque = np.empty((3 * n, min(BLOCK, states))), np.empty((n, min(BLOCK, states)))
            p = [np.array(value) for value in inputs.tolist()]
            for start in range(0, states, BLOCK):
                count = min(BLOCK, states - start)
                rows = [row[:count] for row in state]
                for i, values in enumerate((q, v, a)):
                    state[i * n : (i + 1) * n, :count] = values[start : start + count].T
                results = torque[:, :count]
                kernel(rows[:n], rows[n : 2 * n], rows[2 * n :], p, workspace[:, :count], results)
                out[start : start + count] = results.T
            return True

        return batch


_UFUNC_NAMES = ("add", "subtract", "multiply", "negative", "sin", "cos", "tanh", "sign", "copyto", "array")


def _function(source: str, names: dict[str, Any] | None = None) -> Any:
    namespace: dict[str, Any] = {"sin": math.sin, "cos": math.cos, "tanh": math.tanh, "sign": sign}
    namespace.update(names or {})
    exec(compile(source, "<specialised dynamics>", "exec"), namespace)  # noqa: S102 - text made by emission.py
    return namespace["kernel"]
