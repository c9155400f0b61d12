"""The last seconds, kept in a ring and written out at a fault."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rnea_ros.control.supervisor import Mode

Array = NDArray[np.float64]

FIELDS = ("position", "velocity", "reference_position", "reference_velocity", "command")
_MODES = {mode: float(index) for index, mode in enumerate(Mode)}


class History:
    """A ring of `length` cycles for n joints; 0 keeps nothing."""

    def __init__(self, n: int, length: int) -> None:
        self.n = n
        self._ring = np.zeros((length, 2 + len(FIELDS) * n))
        self._count = 0

    def add(self, stamp: int, mode: Mode, q: Array, qd: Array, reference: Array, command: Array) -> None:
        ring, n = self._ring, self.n
        if not len(ring):
            return
        row = ring[self._count % len(ring)]
        row[0] = stamp * 1e-9
        row[1] = _MODES[mode]
        row[2 : 2 + n] = q
        row[2 + n : 2 + 2 * n] = qd
        row[2 + 2 * n : 2 + 3 * n] = reference[0]
        row[2 + 3 * n : 2 + 4 * n] = reference[1]
        row[2 + 4 * n :] = command
        self._count += 1

    def snapshot(self) -> Array:
        """(cycles, 2 + 5 n), oldest first: stamp s, index of the mode, then the FIELDS."""
        length = len(self._ring)
        if self._count <= length:
            return self._ring[: self._count].copy()
        return np.roll(self._ring, -(self._count % length), axis=0)

    def columns(self, joint_names: Sequence[str]) -> list[str]:
        """What stands in the columns of the snapshot."""
        return ["stamp", "mode", *(f"{field}.{name}" for field in FIELDS for name in joint_names)]
