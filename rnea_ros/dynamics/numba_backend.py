"""The specialised code compiled by Numba, or loaded from the cache where it was compiled before.

Importing this module imports Numba, which takes a fifth of a second: it is imported when a kernel is first needed.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import pickle
import platform
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cached_property, lru_cache
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import serialize
from numba.core.ccallback import CFunc
from numba.core.compiler import CompileResult

from rnea_ros.dynamics import native_call
from rnea_ros.dynamics.cache import KernelCache
from rnea_ros.dynamics.expression import Program
from rnea_ros.dynamics.links import Layout
from rnea_ros.dynamics.numba_source import batch_source, sign_source, sine_cosine_source, single_source
from rnea_ros.dynamics.python_backend import PythonKernel

ROW = numba.float64[::1]
TABLE = numba.float64[:, ::1]

# Fused multiply-add alone: no flag that assumes finite numbers, since the kernels test for them
OPTIONS = {"fastmath": {"contract"}, "error_model": "numpy"}

# LLVM takes about 2 ms an operation for the batch (20 s for 40 joints), half as long for one state
BATCH_OPERATIONS = 1800


class NumbaKernel:
    """Compiled code of one robot. Its functions return False where they refuse the input, or raise for other types.

    The arrays of `single` and `gravity` are (n,), those of `batch` (N, n), all float64 and C-contiguous.
    """

    name = "numba"

    def __init__(self, n: int, rigid: Program, drive: Program, gravity: Program) -> None:
        self._n = n
        self._rigid, self._drive, self._gravity = rigid, drive, gravity
        self._arrays = PythonKernel(n, rigid, drive, gravity) if rigid.operations > BATCH_OPERATIONS else None
        self.tests_finite = self._arrays is None

    @cached_property
    def single(self) -> Callable[..., bool]:
        """single(q, v, a, inputs, out): torque of one state."""
        return self._of_one_state("qva", [self._rigid, self._drive])

    @cached_property
    def gravity(self) -> Callable[..., bool]:
        """gravity(q, inputs, out): torque that holds one state."""
        return self._of_one_state("q", [self._gravity])

    @cached_property
    def batch(self) -> Callable[..., bool]:
        """batch(q, v, a, inputs, out): torque of N states; over NumPy arrays where compiling would take too long."""
        if self._arrays is not None:
            return self._arrays.batch
        source = batch_source("kernel", self._n, self._rigid, self._drive)
        return compiled_dispatcher(source, numba.boolean(TABLE, TABLE, TABLE, ROW, TABLE))

    def _of_one_state(self, letters: str, programs: list[Program]) -> Callable[..., bool]:
        if not native_call.supported():
            source = single_source("kernel", letters, self._n, programs)
            return compiled_dispatcher(source, numba.boolean(*([ROW] * (len(letters) + 2))))
        lengths = {**dict.fromkeys(letters, self._n), "p": Layout(self._n).size, "out": self._n}
        source = single_source("kernel", letters, self._n, programs, native_call.builtin_head(lengths))
        return native_call.builtin(compiled_function(source))


@lru_cache(maxsize=64)
def compiled_dispatcher(source: str, signature: Any) -> Callable[..., bool]:
    """`kernel` of this text as a Numba function for arrays."""
    dispatcher = numba.njit(**OPTIONS)(_python_function(source))
    dispatcher._cache = stored = _Stored(source, dispatcher.targetctx)
    with stored.lock():
        dispatcher.compile(signature)
    dispatcher.disable_compile()
    return dispatcher


@lru_cache(maxsize=64)
def compiled_function(source: str) -> Any:
    """`kernel(self, arguments, count)` of this text as a C function."""
    word = numba.types.intp
    compiled: Any = CFunc(_python_function(source), ((word, word, word), word), locals={}, options=OPTIONS)
    compiled._cache = stored = _Stored(source, compiled._targetdescr.target_context)
    with stored.lock():
        compiled.compile()
    return compiled


def _python_function(source: str) -> Any:
    names: dict[str, Any] = {name: getattr(native_call, name) for name in ("word", "data", "floats", "answer")}
    # Numba imports the module of a function that it loads
    names |= {"__name__": __name__, "math": math, "np": np, "tanh": math.tanh}
    exec(compile(_HELPERS + source, "<specialised dynamics>", "exec"), names)  # noqa: S102 - text made by numba_source
    for helper in ("sine_cosine", "sign"):
        names[helper] = numba.njit(**OPTIONS)(names[helper])
    return names["kernel"]


_HELPERS = sine_cosine_source() + sign_source()


class _Stored:
    """What Numba asks before it compiles, and tells afterwards (numba.core.caching.Cache)."""

    def __init__(self, source: str, target_context: Any) -> None:
        self._cache = KernelCache()
        processor = target_context.codegen().magic_tuple()  # triple, name and features
        versions = (numba.__version__, llvmlite.__version__, platform.python_version(), np.__version__)
        text = _HELPERS + inspect.getsource(native_call) + source
        self._key = hashlib.sha256(repr((text, OPTIONS, processor, versions)).encode()).hexdigest()

    def lock(self) -> AbstractContextManager[None]:
        return self._cache.lock()

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        payload = self._cache.load(self._key)
        if payload is None:
            return None
        try:
            target_context.refresh()
            return CompileResult._rebuild(target_context, *pickle.loads(payload))  # noqa: S301 - from our own folder
        except Exception as error:  # whatever an unreadable file raises, compiling is the remedy
            self._cache.discard(self._key, f"cannot be loaded ({type(error).__name__}: {error})")
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        self._cache.store(self._key, serialize.dumps(result._reduce()))
