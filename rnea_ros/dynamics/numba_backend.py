"""The specialised code compiled by Numba, or loaded from the cache where it was compiled before.

Importing this module imports Numba, which takes a fifth of a second: it is imported when a kernel is first needed.
"""

from __future__ import annotations

import hashlib
import math
import pickle
import platform
from collections.abc import Callable
from functools import cached_property
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import serialize
from numba.core.compiler import CompileResult

from rnea_ros.dynamics.cache import KernelCache
from rnea_ros.dynamics.expression import Program
from rnea_ros.dynamics.numba_source import batch_source, sign_source, sine_cosine_source, single_source

ROW = numba.float64[::1]
TABLE = numba.float64[:, ::1]

# Fused multiply-add alone: no flag that assumes finite numbers, since the kernels test for them
OPTIONS = {"fastmath": {"contract"}, "error_model": "numpy"}


class NumbaKernel:
    """Compiled code of one robot. Each function returns False where it refuses the input, and raises for other types.

    The arrays of `single` and `gravity` are (n,), those of `batch` (N, n), all float64 and C-contiguous.
    """

    name = "numba"
    tests_finite = True

    def __init__(self, n: int, rigid: Program, drive: Program, gravity: Program) -> None:
        self._n = n
        self._rigid, self._drive, self._gravity = rigid, drive, gravity
        self._cache = KernelCache()

    @cached_property
    def single(self) -> Callable[..., bool]:
        """single(q, v, a, inputs, out): torque of one state."""
        source = single_source("kernel", "qva", self._n, [self._rigid, self._drive])
        return self._compiled(source, numba.boolean(ROW, ROW, ROW, ROW, ROW), allocates=False)

    @cached_property
    def gravity(self) -> Callable[..., bool]:
        """gravity(q, inputs, out): torque that holds one state."""
        source = single_source("kernel", "q", self._n, [self._gravity])
        return self._compiled(source, numba.boolean(ROW, ROW, ROW), allocates=False)

    @cached_property
    def batch(self) -> Callable[..., bool]:
        """batch(q, v, a, inputs, out): torque of N states."""
        source = batch_source("kernel", self._n, self._rigid, self._drive)
        return self._compiled(source, numba.boolean(TABLE, TABLE, TABLE, ROW, TABLE), allocates=True)

    def _compiled(self, source: str, signature: Any, allocates: bool) -> Callable[..., bool]:
        """allocates: whether the code makes arrays. If not it is called without Numba's memory management, which would
        cost more than half of a call."""
        text = sine_cosine_source() + sign_source() + source
        # Numba imports the module of a function that it loads
        names: dict[str, Any] = {"__name__": __name__, "math": math, "np": np, "tanh": math.tanh}
        exec(compile(text, "<specialised dynamics>", "exec"), names)  # noqa: S102 - text made by numba_source.py
        for helper in ("sine_cosine", "sign"):
            names[helper] = numba.njit(**OPTIONS)(names[helper])
        options = OPTIONS if allocates else OPTIONS | {"_nrt": False}
        dispatcher = numba.njit(**options)(names["kernel"])
        dispatcher._cache = _Stored(self._cache, text + repr(options), dispatcher)
        with self._cache.lock():
            dispatcher.compile(signature)
        dispatcher.disable_compile()
        return dispatcher


class _Stored:
    """What a Numba dispatcher asks before it compiles, and tells afterwards (numba.core.caching.Cache)."""

    def __init__(self, cache: KernelCache, text: str, dispatcher: Any) -> None:
        self._cache = cache
        processor = dispatcher.targetctx.codegen().magic_tuple()  # triple, name and features
        versions = (numba.__version__, llvmlite.__version__, platform.python_version(), np.__version__)
        self._key = hashlib.sha256(repr((text, processor, versions)).encode()).hexdigest()

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
