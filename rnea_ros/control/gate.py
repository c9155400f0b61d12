"""The gate: the last thing before a command leaves.

With support s (what our command owes to gravity), the robot's own share h, the desired command u, limit L of the total
joint torque, rate limit R and the last command u₋:

    1. effort    r = clamp(u - s,  min(0, -L - (s + h)),  max(0, L - (s + h)))      the rest gets what support leaves
                 u = clamp(s + r,  min(0, -L - h),  max(0, L - h))                  binds only where gravity exceeds L
    2. rate      u = clamp(u,  u₋ - R dt,  u₋ + R dt)       dt = min(measured, nominal)
    3. finite    a command that is not finite never leaves: u = u₋, and the caller is told

Where |s + h| <= L and |u + h| <= L step 1 changes nothing, and where |u - u₋| <= R dt neither does step 2. That is so
nearly always, and tested in a fraction of the time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Gate:
    """Holds the last command. All arrays are (n,), Nm (N for prismatic joints), rates Nm/s."""

    def __init__(self, effort_limit: Array, rate_limit: Array, nominal_period: float) -> None:
        n = len(effort_limit)
        self.nominal_period = nominal_period
        self.effort_limit, self.rate_limit = effort_limit, rate_limit
        self.previous = np.zeros(n)
        self.clamped = np.zeros(n, dtype=bool)  # by effort, in the last command
        self.slowed = np.zeros(n, dtype=bool)  # by rate, in the last command
        self._total, self._low, self._high, self._rest, self._step = (np.zeros(n) for _ in range(5))
        self._both, self._inside = np.zeros((2, n)), np.zeros((2, n), dtype=bool)

    def restart(self, previous: Array) -> None:
        """Take `previous` for the last command."""
        self.previous[:] = previous

    def bounded(self, support: Array, share: Array, desired: Array, out: Array) -> Array:
        """Step 1 alone, without memory: `desired` within the effort limits, into `out`."""
        total, low, high, rest = self._total, self._low, self._high, self._rest
        if self._within_effort(support, share, desired):
            self.clamped[:] = False
            out[:] = desired
            return out
        np.add(support, share, out=total)
        self._bounds_beside(total)
        np.subtract(desired, support, out=rest)
        np.minimum(rest, high, out=out)
        np.maximum(out, low, out=out)
        np.not_equal(out, rest, out=self.clamped)
        out += support
        self._bounds_beside(share)
        np.minimum(out, high, out=out)
        np.maximum(out, low, out=out)
        return out

    def apply(self, support: Array, share: Array, desired: Array, measured_period: float, out: Array) -> bool:
        """The command into `out`; it becomes the last one. False where the desired one was not finite."""
        self.bounded(support, share, desired, out)
        dt = min(max(measured_period, 0.0), self.nominal_period)
        step, high, low = self._step, self._high, self._low
        np.multiply(self.rate_limit, dt, out=step)
        if self._within_rate(out, step):
            self.slowed[:] = False
            self.previous[:] = out
            return True
        np.add(self.previous, step, out=high)
        np.subtract(self.previous, step, out=low)
        np.less(high, out, out=self.slowed)
        np.logical_or(self.slowed, np.less(out, low), out=self.slowed)
        np.minimum(out, high, out=out)
        np.maximum(out, low, out=out)
        if not np.isfinite(out).all():
            out[:] = self.previous
            return False
        self.previous[:] = out
        return True

    def _bounds_beside(self, torque: Array) -> None:
        """What the effort limits leave beside `torque`: min(0, -L - torque) and max(0, L - torque)."""
        low, high = self._low, self._high
        np.subtract(self.effort_limit, torque, out=high)
        np.maximum(high, 0.0, out=high)
        np.add(self.effort_limit, torque, out=low)
        np.negative(low, out=low)
        np.minimum(low, 0.0, out=low)

    def _within_effort(self, support: Array, share: Array, desired: Array) -> bool:
        """Whether support and desired command are both within the effort limits."""
        both, inside = self._both, self._inside
        np.add(support, share, out=both[0])
        np.add(desired, share, out=both[1])
        np.abs(both, out=both)
        np.less_equal(both, self.effort_limit, out=inside)
        return bool(np.count_nonzero(inside) == inside.size)

    def _within_rate(self, command: Array, step: Array) -> bool:
        """Whether the command is finite and within the step from the last one."""
        change, inside = self._rest, self._inside[0]
        np.subtract(command, self.previous, out=change)
        np.abs(change, out=change)
        np.less_equal(change, step, out=inside)
        return bool(np.count_nonzero(inside) == inside.size and np.isfinite(change).all())
