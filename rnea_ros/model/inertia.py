"""Mass, centre of mass and inertia of rigid things, and how several of them become one.

Lumping is always the same two steps: rotate into the common frame, then shift to the common centre of mass by the
parallel-axis theorem (Steiner).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rnea_ros.model.errors import ModelError

Array = NDArray[np.float64]

# A principal moment may exceed the sum of the other two by this fraction of the largest: rounding of printed numbers
TRIANGLE_TOLERANCE = 1e-3
ROUNDING = 1e-12  # kg m², far below any body's


@dataclass(frozen=True, eq=False)
class Inertial:
    """Ten inertial parameters in some frame."""

    mass: float  # kg
    com: Array  # (3,) m
    inertia: Array  # (3, 3) kg m² about the centre of mass; matrix elements, so [0, 1] is I_xy of URDF

    @staticmethod
    def nothing() -> Inertial:
        """No mass and no inertia."""
        return Inertial(0.0, np.zeros(3), np.zeros((3, 3)))

    @property
    def is_nothing(self) -> bool:
        """Whether both mass and inertia are 0."""
        return self.mass == 0.0 and not self.inertia.any()

    def seen_from(self, rotation: Array, translation: Array) -> Inertial:
        """The same thing in the frame in which its present frame has the pose (rotation (3, 3), translation (3,) m).

        c' = R c + p,   I' = R I Rᵀ   (about the centre of mass, so nothing is shifted here)
        """
        inertia = rotation @ self.inertia @ rotation.T
        return Inertial(self.mass, rotation @ self.com + translation, 0.5 * (inertia + inertia.T))


def parallel_axis(mass: float, offset: Array) -> Array:
    """What a mass adds about a point at `offset` (3,) m from its centre: m (‖d‖² 1 − d dᵀ), kg m²."""
    addition: Array = mass * (float(offset @ offset) * np.eye(3) - np.outer(offset, offset))
    return addition


def lump(parts: Iterable[Inertial]) -> Inertial:
    """One rigid thing made of several, all given in the same frame. Mass is conserved.

    m = Σ mᵢ,   c = Σ mᵢ cᵢ / m,   I = Σ [Iᵢ + mᵢ (‖dᵢ‖² 1 − dᵢ dᵢᵀ)],   dᵢ = cᵢ − c

    Parts without mass and inertia change nothing, to the last bit.
    """
    something = [part for part in parts if not part.is_nothing]
    if not something:
        return Inertial.nothing()
    if len(something) == 1:
        return something[0]
    mass = sum(part.mass for part in something)
    inertia = np.sum([part.inertia for part in something], axis=0)
    if mass == 0.0:
        return Inertial(0.0, np.zeros(3), inertia)
    com = np.sum([part.mass * part.com for part in something], axis=0) / mass
    for part in something:
        inertia = inertia + parallel_axis(part.mass, part.com - com)
    return Inertial(float(mass), com, inertia)


def why_impossible(inertia: Array) -> str | None:
    """Why no body has this inertia (3, 3) kg m² about its centre of mass, or None.

    The principal moments are ∫(y² + z²) dm and so on: none is negative, and none exceeds the sum of the other two.
    """
    smallest, middle, largest = np.linalg.eigvalsh(inertia)
    printed = f"principal moments {smallest:.4g}, {middle:.4g}, {largest:.4g} kg m²"
    if smallest < -1e-9 * abs(largest) - ROUNDING:
        return f"inertia is not positive definite ({printed})"
    if largest > smallest + middle + TRIANGLE_TOLERANCE * largest + ROUNDING:
        return f"inertia breaks the triangle inequality: one moment exceeds the sum of the other two ({printed})"
    return None


def checked_inertial(what: str, mass: Any, com: Any = None, inertia: Any = None) -> Inertial:
    """An `Inertial` from numbers of a user, or a `ModelError` that starts with `what`.

    mass kg; com (3,) m, the origin if None; inertia (3, 3) kg m² about the centre of mass, a point mass if None.
    """
    com_array = _array(what, "centre of mass", (0.0, 0.0, 0.0) if com is None else com, (3,))
    inertia_array = _array(what, "inertia", np.zeros((3, 3)) if inertia is None else inertia, (3, 3))
    mass_value = float(_array(what, "mass", mass, ()))
    if mass_value < 0.0:
        raise ModelError(f"{what}: mass is negative ({mass_value:g} kg)")
    if not np.allclose(inertia_array, inertia_array.T, rtol=1e-9, atol=1e-12 * float(np.abs(inertia_array).max())):
        raise ModelError(f"{what}: inertia matrix is not symmetric")
    if (reason := why_impossible(inertia_array)) is not None:
        raise ModelError(f"{what}: {reason}")
    return Inertial(mass_value, com_array, inertia_array)


def _array(what: str, quantity: str, value: Any, shape: tuple[int, ...]) -> Array:
    try:
        given = np.asarray(value)
    except ValueError:  # ragged
        given = np.asarray(None)
    if given.dtype.kind not in "fiu" or np.ma.is_masked(
        value
    ):  # no text, no complex number, none too large for float64
        raise ModelError(f"{what}: {quantity} is not numeric")
    array = np.array(given, dtype=np.float64)
    if array.shape != shape:
        raise ModelError(f"{what}: {quantity} has shape {array.shape}, expected {shape}")
    if not np.isfinite(array).all():
        raise ModelError(f"{what}: {quantity} is not finite")
    return array
