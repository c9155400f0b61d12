"""Whatever a caller hands over becomes a float array of the right shape, or one clear line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnea_ros.dynamics.errors import DynamicsError

Array = NDArray[np.float64]


def numeric(name: str, value: Any) -> Array:
    """A C-contiguous, writeable float64 array; the value itself where it is one. Raises DynamicsError."""
    if np.ma.is_masked(value):
        raise DynamicsError(f"{name} has masked entries, expected a number for every joint")
    try:
        array = np.asarray(value)
    except ValueError:
        array = None
    if array is None or (array.dtype == object and array.ndim == 1 and any(np.ndim(row) for row in array)):
        raise DynamicsError(f"{name} is ragged: its rows differ in length")  # NumPy before 1.24 makes objects of it
    if array.dtype.kind not in "fiu":
        raise DynamicsError(f"{name} has dtype {array.dtype}, expected real numbers")
    if array.dtype.itemsize > 8:
        array = array.astype(np.float64)
    return np.require(array, np.float64, ["C", "W", "A"])


def joint_arrays(joint_names: Sequence[str], **values: Any) -> list[Array]:
    """Arrays (n,) or (N, n), all of one shape and finite, in the order given. Raises DynamicsError naming the joint."""
    n = len(joint_names)
    arrays = [joint_array(joint_names, name, value) for name, value in values.items()]
    first, *others = values
    for name, array in zip(others, arrays[1:], strict=True):
        if array.shape != arrays[0].shape:
            raise DynamicsError(
                f"{name} has shape {array.shape}, but {first} has {arrays[0].shape}; both need {n} joints"
            )
    return arrays


def joint_array(joint_names: Sequence[str], name: str, value: Any) -> Array:
    """One array (n,) or (N, n) of finite numbers. Raises DynamicsError naming the joint."""
    n = len(joint_names)
    array = numeric(name, value)
    if array.ndim not in (1, 2) or array.shape[-1] != n:
        raise DynamicsError(
            f"{name} has shape {array.shape}, expected ({n},) or (N, {n}) for the joints {', '.join(joint_names)}"
        )
    finite = np.isfinite(array)
    if not finite.all():
        first = tuple(np.argwhere(~finite)[0].tolist())
        joint, where = first[-1], f" in state {first[0]}" if array.ndim == 2 else ""
        number = array[first]
        raise DynamicsError(f"{name} of joint {joint_names[joint]!r}{where} is {number}, expected a finite number")
    return array


def vector(name: str, value: Any, size: int) -> Array:
    """(size,) finite numbers, a copy. Raises DynamicsError."""
    array = numeric(name, value).copy()
    if array.shape != (size,):
        raise DynamicsError(f"{name} has shape {array.shape}, expected ({size},)")
    if not np.isfinite(array).all():
        raise DynamicsError(f"{name} is not finite: {array.tolist()}")
    return array


def wrench_array(value: Any, shape: tuple[int, ...]) -> Array:
    """(6,), or (N, 6) for N states. Raises DynamicsError."""
    array = numeric("wrench", value)
    if array.shape != (6,) and array.shape != (*shape[:-1], 6):
        rows = f" or ({shape[0]}, 6)" if len(shape) == 2 else ""
        raise DynamicsError(f"wrench has shape {array.shape}, expected (6,){rows}: force, then moment")
    if not np.isfinite(array).all():
        raise DynamicsError("wrench is not finite")
    return array


def output(out: Any, shape: tuple[int, ...]) -> Array:
    """`out` if a result of this shape can be written to it. Raises DynamicsError."""
    if not isinstance(out, np.ndarray) or out.dtype != np.float64:
        kind = f"dtype {out.dtype}" if isinstance(out, np.ndarray) else type(out).__name__
        raise DynamicsError(f"out is {kind}, expected a float64 array")
    if out.shape != shape:
        raise DynamicsError(f"out has shape {out.shape}, expected {shape}")
    if not out.flags.writeable:
        raise DynamicsError("out is read-only")
    return out
