"""Whose arm it is: what controller and watchdog say to each other.

The controller's heartbeat says its mode with every command, or one of the words below. The watchdog's status says what
it does, with the last command of its last turn. At every moment at most one of them commands, but for the time that a
message takes:

    the watchdog takes over     when commands end for longer than its patience, or at a goodbye
    the controller waits        while the watchdog is active, and after a sleep longer than that patience, for it may
                                have been replaced; it commands nothing, and its heartbeats ask who has the arm
    the watchdog hands back     after enough fresh heartbeats in a row
    the controller begins anew  when a status sent since it waits is not active, from the watchdog's last command;
                                or when no status comes: nobody is there

`turn.py` is the controller's side of it, `watchdog.py` the other.
"""

from __future__ import annotations

from enum import Enum

# What a heartbeat says instead of a mode in which the controller commands.
WAITING = "waiting"  # alive, commands nothing, asks who has the arm
GOODBYE = "goodbye"  # leaves an arm that has to be carried
LEFT = "idle"  # leaves an arm that has not

PATIENCE = 0.02  # s: default of the watchdog's detection time
PATIENCE_PERIODS = 3  # no shorter silence is an end


class Status(Enum):
    """What the watchdog does. The value is what it announces."""

    STANDBY = "standby"  # nobody commands, nothing to watch
    WATCHING = "watching"
    ACTIVE = "active"  # it has the arm
    RELEASED = "released"  # it ends


def patience(detection_time: float, period: float) -> int:
    """ns of silence after which a controller counts as gone; both arguments in s."""
    return round(max(detection_time, PATIENCE_PERIODS * period) * 1e9)
