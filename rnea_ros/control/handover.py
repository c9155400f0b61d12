"""Whose arm it is: what controller and watchdog say to each other, and when the controller may command.

The controller's heartbeat says its mode with every command, or one of the words below. The watchdog's status says what
it does, with the last command of its last turn. At every moment at most one of them commands, but for the time that a
message takes:

    the watchdog takes over     when commands end for longer than its patience, or at a goodbye
    the controller waits        while the watchdog is active, and after a sleep longer than that patience, for it may
                                have been replaced; it commands nothing, and its heartbeats ask who has the arm
    the watchdog hands back     after enough fresh heartbeats in a row
    the controller begins anew  when a status sent since it waits is not active, from the watchdog's last command;
                                or when no status comes for NO_WATCHDOG

Times are ns: `now` of a clock that only goes forward, `stamp` and `wall` of the clock that stamps messages.
"""

from __future__ import annotations

from enum import Enum

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# What a heartbeat says instead of a mode in which the controller commands.
WAITING = "waiting"  # alive, commands nothing, asks who has the arm
GOODBYE = "goodbye"  # leaves an arm that has to be carried
LEFT = "idle"  # leaves an arm that has not

PATIENCE = 0.02  # s: default of the watchdog's detection time
PATIENCE_PERIODS = 3  # no shorter silence is an end
NO_WATCHDOG = 100_000_000  # ns without any status while waiting: five times what an active watchdog lets pass
ALIVE = 500_000_000  # ns: a watchdog that was heard this recently is alive


class Status(Enum):
    """What the watchdog does. The value is what it announces."""

    STANDBY = "standby"  # nobody commands, nothing to watch
    WATCHING = "watching"
    ACTIVE = "active"  # it has the arm
    RELEASED = "released"  # it ends


def patience(detection_time: float, period: float) -> int:
    """ns of silence after which a controller counts as gone; both arguments in s."""
    return round(max(detection_time, PATIENCE_PERIODS * period) * 1e9)


class Turn:
    """The controller's side: `may_command` is asked before every command."""

    def __init__(self, period: float, detection_time: float = PATIENCE) -> None:
        self.waiting = False
        self.status: Status | None = None  # the last one heard
        self._replaced = False  # in this wait the watchdog was active
        self._last_command: Array | None = None  # (n,) of the watchdog, in controller order
        self._patience = patience(detection_time, period)
        self._ran_at: int | None = None
        self._heard_at: int | None = None
        self._since = 0  # wall time at which the wait began
        self._unheard = 0  # ns in which this process ran and heard nothing while waiting

    def on_status(self, text: str, stamp: int, command: Array | None, now: int, wall: int) -> None:
        """The watchdog's status. command: (n,) Nm, None where it had no turn yet."""
        try:
            status = Status(text)
        except ValueError:
            return
        self.status, self._heard_at, self._unheard = status, now, 0
        if command is not None:
            self._last_command = np.array(command, dtype=float)
        if status is Status.ACTIVE:
            self._wait(wall)
            self._replaced = True
        elif self.waiting and stamp >= self._since:
            self.waiting = False

    def may_command(self, now: int, wall: int) -> bool:
        """Whether the controller may command in this cycle; to be asked in every cycle in which it would."""
        before = now if self._ran_at is None else self._ran_at
        gap = max(now - before, 0)
        self._ran_at = now
        if gap > self._patience and self.alive(before):
            self._wait(wall)
            self._unheard = 0
        elif self.waiting:
            self._unheard += min(gap, self._patience)
            if self._unheard > NO_WATCHDOG:
                self.waiting = False
        return not self.waiting

    def begin(self, now: int, wall: int) -> bool:
        """At activation: like `may_command`, but the time before does not count as sleep."""
        self._ran_at = now
        self.waiting = self._replaced = False
        if self.status is Status.ACTIVE and self.alive(now):
            self._wait(wall)
            self._replaced = True
        return not self.waiting

    def taken_back(self) -> Array | None:
        """After a wait: the last command that the joints saw, None where it is the controller's own."""
        replaced, self._replaced = self._replaced, False
        return self._last_command if replaced else None

    def alive(self, now: int) -> bool:
        """Whether a watchdog would take over now."""
        return self._heard_at is not None and now - self._heard_at < ALIVE and self.status is not Status.RELEASED

    def _wait(self, wall: int) -> None:
        """From now on; every sign that the arm is another's counts anew."""
        self.waiting = True
        self._since = wall
