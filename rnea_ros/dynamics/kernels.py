"""Which code computes the torque of a robot: compiled, plain Python, or the recursion as it stands."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from typing import Any, Literal, Protocol

from rnea_ros.dynamics.errors import DynamicsError
from rnea_ros.dynamics.links import LinkSystem, link_system
from rnea_ros.dynamics.python_backend import PythonKernel
from rnea_ros.dynamics.recursion_backend import RecursionKernel
from rnea_ros.dynamics.regrouping import regroup
from rnea_ros.dynamics.specialiser import drive_program, gravity_program, torque_program
from rnea_ros.model.robot import RobotModel

Backend = Literal["auto", "numba", "python", "recursion"]

# Numba takes 1.3 ms an operation to compile: beyond this many (about 20 joints with axes and frames at random, 30 with
# axes along x, y or z) the straight-line code runs as plain Python, and beyond this many bodies nothing is specialised
NUMBA_OPERATIONS = 3000
SPECIALISED_BODIES = 200


class Kernel(Protocol):
    """Functions that write the torque to `out`; False where they do not take the arrays as they stand."""

    @property
    def name(self) -> str: ...

    @property
    def tests_finite(self) -> bool: ...  # whether `batch` refuses what is not finite, or relies on its caller

    @property
    def single(self) -> Callable[..., bool]: ...  # (q, qd, qdd, inputs, out), arrays (n,)

    @property
    def gravity(self) -> Callable[..., bool]: ...  # (q, inputs, out)

    @property
    def batch(self) -> Callable[..., bool]: ...  # (q, qd, qdd, inputs, out), C-contiguous arrays (N, n)


def make_kernel(robot: RobotModel, backend: Backend) -> tuple[Kernel, LinkSystem]:
    """The kernel for a robot, and the links in the frames that it computes in.

    Raises DynamicsError where Numba is insisted on and absent, or the robot is too large for it.
    """
    plain = link_system(robot)
    if backend == "recursion" or len(plain.links) > SPECIALISED_BODIES:
        return RecursionKernel(plain), plain
    regrouped = regroup(plain)
    programs = (torque_program(regrouped), drive_program(robot), gravity_program(regrouped))
    large = programs[0].operations > NUMBA_OPERATIONS
    if backend == "numba" and large:
        raise DynamicsError(
            f"robot {robot.name!r} takes {programs[0].operations} operations, more than the {NUMBA_OPERATIONS} that "
            "Numba is given to compile; use the backend 'python'"
        )
    compiled = None if backend == "python" or large else _numba_backend(required=backend == "numba")
    if compiled is None:
        return PythonKernel(robot.n, *programs), regrouped
    return compiled.NumbaKernel(robot.n, *programs), regrouped


def _numba_backend(required: bool) -> Any:
    """The module that compiles, or None where Numba is not installed or broken (one warning)."""
    try:
        from rnea_ros.dynamics import numba_backend
    except ImportError as error:
        if required:
            raise DynamicsError(f"backend 'numba' needs Numba, which cannot be imported ({error})") from None
        if importlib.util.find_spec("numba") is not None:
            warnings.warn(f"Numba is not used, it cannot be imported: {error}", RuntimeWarning, stacklevel=4)
        return None
    return numba_backend
