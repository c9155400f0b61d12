"""Whether the arm is ours: the controller's side of the handover with the watchdog; see `handover.py`.

    the watchdog is active                        wait
    we slept longer than its patience             wait: we may have been replaced
    waiting, and it is heard not to be active     the arm is ours, from its last command on
    waiting, and nothing is heard for UNHEARD     likewise: nobody is there

Times are ns of the clock that stamps messages.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rnea_ros.control.handover import PATIENCE, Status, patience

Array = NDArray[np.float64]

ALIVE = 500_000_000  # ns: a watchdog that was heard this recently is alive
UNHEARD = 200_000_000  # ns of waiting without a word after which there is no watchdog


class Turn:
    """Asked before every command. `waiting`: the arm is the watchdog's, or may be."""

    def __init__(self, period: float) -> None:
        self.waiting = False
        self._patience = patience(PATIENCE, period)
        self._status: Status | None = None
        self._command: Array | None = None  # (n,) the watchdog's last one
        self._replaced = False  # in this wait the watchdog was active
        self._heard_at: int | None = None
        self._ran_at: int | None = None
        self._since = 0  # when the wait began, or the watchdog was last active

    def hear(self, status: str, stamp: int, command: Array | None, now: int) -> None:
        """The watchdog's status, sent at `stamp`, with its last command (n,) in controller order, if it had a turn."""
        try:
            self._status = Status(status)
        except ValueError:
            return
        self._heard_at = now
        self._command = command
        if self._status is Status.ACTIVE:
            self.waiting = self._replaced = True
            self._since = now
        elif self.waiting and (self._replaced or stamp >= self._since):
            self.waiting = False

    def alive(self, now: int) -> bool:
        """Whether a watchdog would take over at `now`."""
        return self._heard_at is not None and abs(now - self._heard_at) < ALIVE and self._status is not Status.RELEASED

    def begin(self, now: int) -> bool:
        """At activation: whether the arm is ours. What was before does not count as sleep."""
        self._ran_at, self._since = now, now
        self.waiting = self._replaced = self.alive(now) and self._status is Status.ACTIVE
        return not self.waiting

    def ours(self, now: int) -> bool:
        """Whether the arm is ours in the cycle at `now`; to be asked in every cycle."""
        ran_at, self._ran_at = self._ran_at, now
        slept = ran_at is not None and now - ran_at > self._patience
        if slept and ran_at is not None and self.alive(ran_at):
            self.waiting, self._since = True, now
        elif self.waiting and abs(now - self._since) > UNHEARD:
            self.waiting = False
        return not self.waiting

    def last_command(self) -> Array | None:
        """After a wait: the last command that the joints saw, (n,); None where it is our own."""
        replaced, self._replaced = self._replaced, False
        return self._command if replaced else None
