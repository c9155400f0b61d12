"""The simulated command controller against what is known of ros2_control's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rnea_ros.simulation.forward_command import ForwardCommand


def cycle(command: ForwardCommand, *messages: list[float]) -> None:
    for message in messages:
        command.receive(message)
    command.update()


def test_nothing_on_the_interface_before_the_first_command() -> None:
    command = ForwardCommand(2)
    command.update()
    assert command.effort is None


def test_the_newest_message_before_an_update_wins() -> None:
    command = ForwardCommand(2)
    cycle(command, [1.0, 2.0], [3.0, 4.0])
    assert command.effort is not None
    np.testing.assert_array_equal(command.effort, [3.0, 4.0])


def test_the_last_command_is_held_for_ever() -> None:
    command = ForwardCommand(1)
    cycle(command, [5.0])
    for _ in range(10_000):
        command.update()
    assert command.effort is not None and command.effort[0] == 5.0


def test_an_empty_message_is_ignored() -> None:
    command = ForwardCommand(1)
    cycle(command, [5.0])
    cycle(command, [])
    assert command.active and command.effort is not None and command.effort[0] == 5.0


def test_a_wrong_length_deactivates_and_leaves_the_torque_until_switched_back() -> None:
    command = ForwardCommand(2)
    cycle(command, [1.0, 2.0])
    cycle(command, [9.0])
    assert not command.active and "1 values for 2 joints" in command.reason
    cycle(command, [3.0, 4.0])
    np.testing.assert_array_equal(command.effort, [1.0, 2.0])
    command.activate()
    command.update()
    np.testing.assert_array_equal(command.effort, [1.0, 2.0])  # what came while inactive is not replayed
    cycle(command, [3.0, 4.0])
    np.testing.assert_array_equal(command.effort, [3.0, 4.0])


@given(st.lists(st.floats(width=64), min_size=2, max_size=2))
def test_no_non_finite_value_reaches_the_interface(message: list[float]) -> None:
    command = ForwardCommand(2)
    cycle(command, [1.0, 2.0])
    cycle(command, message)
    expected = message if np.isfinite(message).all() else [1.0, 2.0]
    np.testing.assert_array_equal(command.effort, expected)
    assert command.active
