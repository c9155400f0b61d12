"""A compiled function that Python calls without Numba's dispatcher, which takes longer over five arrays than a torque.

CPython lets any C function of the form (self, arguments, count) be a builtin (METH_FASTCALL), and Numba compiles such
functions. What the function has to know is where an array object keeps its fields; that layout belongs to the binary
interface of NumPy (PyArrayObject) and is compared with a real array before it is relied upon. Every argument is tested:
an exact NumPy array, one axis of the right length, native float64, contiguous and aligned, the last one writeable.
"""

from __future__ import annotations

import ctypes
import sys
import sysconfig
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rnea_ros.dynamics.numba_source import Head

# Offsets in bytes from the start of an array object
TYPE, DATA, AXES, SHAPE, DTYPE, FLAGS = 8, 16, 24, 32, 56, 64
CONTIGUOUS_ALIGNED, WRITEABLE = 0x101, 0x400
METH_FASTCALL = 0x80


def supported() -> bool:
    """Whether objects and arrays lie in memory as this module takes them to."""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED") or sys.maxsize < 2**62:
        return False
    array = np.empty((3, 5))[::-1]
    start = id(array)
    word = ctypes.c_void_p.from_address
    shape = word(start + SHAPE).value or 0
    return (
        np.ndarray.__basicsize__ > FLAGS
        and word(start + TYPE).value == id(np.ndarray)
        and word(start + DATA).value == array.ctypes.data
        and ctypes.c_int.from_address(start + AXES).value == 2
        and (word(shape).value, word(shape + 8).value) == array.shape
        and word(start + DTYPE).value == id(np.dtype(np.float64))
        and ctypes.c_int.from_address(start + FLAGS).value == array.flags.num
    )


class _MethodDef(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def builtin(compiled: Any) -> Callable[..., bool]:
    """A builtin function made of compiled code: a Numba cfunc (self, arguments, count) with a `builtin_head`.

    The function keeps all that it is made of alive, as its self and its module, whatever becomes of the robot.
    """
    definition = _MethodDef(b"kernel", compiled.address, METH_FASTCALL, None)
    answer = ctypes.cast(ctypes.pythonapi.PyBool_FromLong, ctypes.c_void_p).value
    table = np.array([id(np.ndarray), id(np.dtype(np.float64)), answer], dtype=np.int64)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    function: Callable[..., bool] = make(ctypes.addressof(definition), table, (definition, compiled))
    return function


def builtin_head(lengths: dict[str, int]) -> Head:
    """The head of a kernel that is a builtin: (self, arguments, count) to one pointer to floats by name, or refusal.

    lengths: of the arrays by name, in the order of the arguments; the last one is written to.
    """
    done, refused = (f"return answer(word(table + 16), {value})" for value in (1, 0))
    lines = [f"table = word(self + {DATA})", f"if count != {len(lengths)}:", f"    {refused}"]
    for i, (name, length) in enumerate(lengths.items()):
        flags = CONTIGUOUS_ALIGNED | (WRITEABLE if i == len(lengths) - 1 else 0)
        lines.append(f"at_{name} = data(word(arguments + {8 * i}), table, {length}, {flags})")
    lines += [f"if {' or '.join(f'at_{name} == 0' for name in lengths)}:", f"    {refused}"]
    lines += [f"{name} = floats(at_{name})" for name in lengths]
    return Head("self, arguments, count", lines, done, refused)


@intrinsic
def word(context: Any, address: Any) -> Any:
    """The 64-bit integer at an address."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.load(builder.inttoptr(args[0], cgutils.intp_t.as_pointer()))

    return types.intp(types.intp), generate


@intrinsic
def half_word(context: Any, address: Any) -> Any:
    """The 32-bit integer at an address."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.load(builder.inttoptr(args[0], cgutils.int32_t.as_pointer()))

    return types.int32(types.intp), generate


@intrinsic
def floats(context: Any, address: Any) -> Any:
    """An address as a pointer to float64."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], _context.get_value_type(types.CPointer(types.float64)))

    return types.CPointer(types.float64)(types.intp), generate


@intrinsic
def answer(context: Any, function: Any, value: Any) -> Any:
    """What the function object* f(long) at an address returns."""

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        from llvmlite import ir

        kind = ir.FunctionType(cgutils.intp_t, [cgutils.intp_t])
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), [args[1]])

    return types.intp(types.intp, types.intp), generate


@numba.njit(error_model="numpy")
def data(array: int, table: int, length: int, flags: int) -> int:
    """Address of the array's first number, or 0 where the array is not as wanted."""
    if word(array + TYPE) != word(table) or word(array + DTYPE) != word(table + 8):
        return 0
    if half_word(array + AXES) != 1 or word(word(array + SHAPE)) != length:
        return 0
    return word(array + DATA) if half_word(array + FLAGS) & flags == flags else 0
