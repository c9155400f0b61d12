"""The supervisor: one table, every pair of mode and event decided, and shown in the documentation."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from rnea_ros.control.errors import Refusal
from rnea_ros.control.supervisor import TABLE, Event, Mode, Supervisor, table_text


def at(mode: Mode) -> Supervisor:
    found = Supervisor()
    found.mode = mode
    return found


def test_documentation_shows_the_table() -> None:
    assert table_text() in (Path(__file__).parent.parent / "docs" / "control.md").read_text()


def test_no_cause_is_named_twice() -> None:
    causes = [(source, item.event) for item in TABLE for source in item.sources]
    assert len(causes) == len(set(causes))


def test_stop_and_deactivate_are_granted_in_every_mode() -> None:
    for mode in Mode:
        assert at(mode).allowed(Event.STOP)
        assert at(mode).allowed(Event.DEACTIVATE)


def test_no_fault_is_left_but_by_reset_or_deactivation() -> None:
    for event in Event:
        found = at(Mode.FAULT)
        with contextlib.suppress(Refusal):
            found.handle(event)
        assert (found.mode is Mode.FAULT) == (event not in (Event.RESET, Event.DEACTIVATE))


def test_a_refusal_says_what_to_do_and_changes_nothing() -> None:
    found = Supervisor()
    with pytest.raises(Refusal, match="trajectory or reference: refused in mode idle; activate first"):
        found.handle(Event.TRAJECTORY)
    assert found.mode is Mode.IDLE
    found = at(Mode.HOLD)
    found.handle(Event.FAULT, "joint3 is hot")
    assert found.text == "fault: joint3 is hot"
    found.handle(Event.FAULT, "and joint4")
    assert found.text == "fault: joint3 is hot"  # the first reason stays
    with pytest.raises(Refusal, match=r"float: refused in mode fault: joint3 is hot; call ~/reset first"):
        found.handle(Event.FLOAT)
    found.handle(Event.RESET)
    assert found.text == "hold"
