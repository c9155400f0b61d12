"""Modes and every transition between them, in one table: from, event, to, and what is commanded meanwhile.

`python -m rnea_ros.control.supervisor` prints the table of the documentation.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from rnea_ros.control.errors import Refusal


class Mode(Enum):
    IDLE = "idle"
    HOLD = "hold"
    FLOAT = "gravity_compensation"
    TRACKING = "tracking"
    FAULT = "fault"


class Event(Enum):
    ACTIVATE = "activate"
    FLOAT = "float"
    HOLD = "hold"
    STOP = "stop"
    RESET = "reset"
    TRAJECTORY = "trajectory or reference"
    CANCEL = "empty trajectory"
    DONE = "end of the trajectory"
    STALE = "reference timed out"
    TIME_JUMP = "clock jumped"
    HANDED_BACK = "handed back by the watchdog"
    CONTACT = "contact (action hold)"
    FAULT = "fault found"
    RELEASED = "ramp to zero ended"
    DEACTIVATE = "deactivate"


class Action(Enum):
    """What is commanded from a transition on. The value is what the documentation says of it."""

    BEGIN = "hold at the measured position; its torque is sent before the activation completes; feedback ramps up"
    CONTINUE = "unchanged"
    FOLLOW = "the law along the new motion, spliced in at the last reference"
    FOLLOW_FROM_ARM = "the law along the new motion, from where the arm is"
    REST = "the law at the last reference"
    BRAKE_REFERENCE = "the reference brakes, then the law holds where it stops"
    BRAKE_ARM = "a reference from the measured position and velocity brakes, then the law holds where it stops"
    RELEASE = (
        "the reference (of a floating arm: the arm) brakes, then the law holds where it stops; where the hardware "
        "carries gravity, a ramp to zero follows"
    )
    FLOAT = "gravity support less damping; the feedback fades at the effort rate"
    BRAKE_SUPPORTED = "gravity support less braking damping, at rest a hold there; blind: support alone"
    GOODBYE = "gravity support as the last command (`hardware`: a ramp to zero), then silence"
    SILENCE = "nothing"


@dataclass(frozen=True)
class Transition:
    sources: tuple[Mode, ...]
    event: Event
    target: Mode
    action: Action


MOVABLE = (Mode.HOLD, Mode.FLOAT, Mode.TRACKING)
ACTIVE = (*MOVABLE, Mode.FAULT)

TABLE: tuple[Transition, ...] = (
    Transition((Mode.IDLE,), Event.ACTIVATE, Mode.HOLD, Action.BEGIN),
    Transition((Mode.HOLD,), Event.FLOAT, Mode.FLOAT, Action.FLOAT),
    Transition((Mode.TRACKING,), Event.FLOAT, Mode.FLOAT, Action.FLOAT),
    Transition((Mode.FLOAT,), Event.FLOAT, Mode.FLOAT, Action.CONTINUE),
    Transition((Mode.HOLD,), Event.HOLD, Mode.HOLD, Action.CONTINUE),
    Transition((Mode.FLOAT,), Event.HOLD, Mode.HOLD, Action.BRAKE_ARM),
    Transition((Mode.TRACKING,), Event.HOLD, Mode.HOLD, Action.BRAKE_REFERENCE),
    Transition((Mode.HOLD, Mode.TRACKING), Event.STOP, Mode.HOLD, Action.RELEASE),
    Transition((Mode.FLOAT,), Event.STOP, Mode.HOLD, Action.RELEASE),
    Transition((Mode.FAULT,), Event.STOP, Mode.FAULT, Action.CONTINUE),
    Transition((Mode.IDLE,), Event.STOP, Mode.IDLE, Action.CONTINUE),
    Transition((Mode.HOLD, Mode.TRACKING), Event.TRAJECTORY, Mode.TRACKING, Action.FOLLOW),
    Transition((Mode.FLOAT,), Event.TRAJECTORY, Mode.TRACKING, Action.FOLLOW_FROM_ARM),
    Transition((Mode.TRACKING,), Event.CANCEL, Mode.HOLD, Action.BRAKE_REFERENCE),
    Transition((Mode.HOLD, Mode.FLOAT), Event.CANCEL, Mode.HOLD, Action.CONTINUE),
    Transition((Mode.TRACKING,), Event.DONE, Mode.HOLD, Action.REST),
    Transition((Mode.TRACKING,), Event.STALE, Mode.HOLD, Action.BRAKE_REFERENCE),
    Transition(MOVABLE, Event.TIME_JUMP, Mode.HOLD, Action.BRAKE_ARM),
    Transition((Mode.FAULT,), Event.TIME_JUMP, Mode.FAULT, Action.BRAKE_SUPPORTED),
    Transition(MOVABLE, Event.HANDED_BACK, Mode.HOLD, Action.BRAKE_ARM),
    Transition((Mode.FAULT,), Event.HANDED_BACK, Mode.FAULT, Action.BRAKE_SUPPORTED),
    Transition((Mode.TRACKING,), Event.CONTACT, Mode.HOLD, Action.BRAKE_ARM),
    Transition(MOVABLE, Event.FAULT, Mode.FAULT, Action.BRAKE_SUPPORTED),
    Transition((Mode.FAULT,), Event.FAULT, Mode.FAULT, Action.CONTINUE),
    Transition((Mode.FAULT,), Event.RESET, Mode.HOLD, Action.BRAKE_ARM),
    Transition((Mode.HOLD,), Event.RELEASED, Mode.IDLE, Action.SILENCE),
    Transition(ACTIVE, Event.DEACTIVATE, Mode.IDLE, Action.GOODBYE),
    Transition((Mode.IDLE,), Event.DEACTIVATE, Mode.IDLE, Action.SILENCE),
)

_BY_CAUSE = {(source, item.event): item for item in TABLE for source in item.sources}

_REMEDY = {
    Mode.IDLE: "activate first",
    Mode.FAULT: "call ~/reset first",
}


class Supervisor:
    """The mode, and the only way to change it."""

    def __init__(self) -> None:
        self.mode = Mode.IDLE
        self.reason = ""  # of the fault
        self.text = Mode.IDLE.value  # as published

    def allowed(self, event: Event) -> Transition:
        """The transition that `event` would cause, or Refusal."""
        found = _BY_CAUSE.get((self.mode, event))
        if found is None:
            accepting = ", ".join(mode.value for mode, cause in _BY_CAUSE if cause is event)
            remedy = _REMEDY.get(self.mode, f"it is for {accepting}")
            raise Refusal(f"{event.value}: refused in mode {self.text}; {remedy}")
        return found

    def handle(self, event: Event, reason: str = "") -> Transition:
        """Change the mode as the table says, or Refusal and no change. `reason` is the fault's line."""
        transition = self.allowed(event)
        if transition.target is Mode.FAULT and self.mode is not Mode.FAULT:
            self.reason = reason
        elif transition.target is not Mode.FAULT:
            self.reason = ""
        self.mode = transition.target
        self.text = f"fault: {self.reason}" if self.mode is Mode.FAULT else self.mode.value
        return transition


def table_text() -> str:
    """The transition table, Markdown."""
    lines = ["| from | event | to | what is commanded |", "|---|---|---|---|"]
    for item in TABLE:
        sources = ", ".join(f"`{source.value}`" for source in item.sources)
        lines.append(f"| {sources} | {item.event.value} | `{item.target.value}` | {item.action.value} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table_text(), end="")
