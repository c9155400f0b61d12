"""The input contract: joint states by name, time by stamp and arrival."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rnea_ros.control.joint_states import JointStateReader
from rnea_ros.control.timekeeping import Time, Timekeeper

NAMES = ("shoulder", "elbow", "wrist")
NAN = float("nan")
MS = 1_000_000


def reader(continuous: bool = False, **options: object) -> JointStateReader:
    return JointStateReader(NAMES, np.full(3, continuous), **options)  # type: ignore[arg-type]


@given(st.permutations([*NAMES, "gripper", "rail"]))
def test_f06_any_order_and_extra_joints_are_mapped_by_name(names: list[str]) -> None:
    place = {name: float(index + 1) for index, name in enumerate(NAMES)}
    values = [place.get(name, NAN) for name in names]
    found = reader()
    for order in (names, names[::-1], names):
        values = [place.get(name, NAN) for name in order]
        assert found.read(order, values, [-v for v in values], [], 1) is None
        np.testing.assert_array_equal(found.position, [1, 2, 3])
        np.testing.assert_array_equal(found.velocity, [-1, -2, -3])


def test_f07_nan_of_other_hardware_and_of_fields_we_do_not_need() -> None:
    found = reader()
    names = ["gripper", *NAMES]
    assert found.read(names, [NAN, 1, 2, 3], [NAN, 0, 0, 0], [NAN] * 4, 1) is None
    assert found.read(["gripper"], [NAN], [NAN], [NAN], 2).foreign  # type: ignore[union-attr]
    np.testing.assert_array_equal(found.position, [1, 2, 3])


@pytest.mark.parametrize(
    ("names", "position", "velocity", "effort", "line"),
    [
        (NAMES, [1, 2], [0, 0, 0], [], "2 positions for 3 names"),
        (NAMES, [1, 2, 3], [0, 0], [], "2 velocities for 3 names"),
        (NAMES, [1, 2, 3], [0, 0, 0], [1], "1 efforts for 3 names"),
        (NAMES, [], [], [], "0 positions for 3 names"),
        (NAMES, [1, NAN, 3], [0, 0, 0], [], "position of 'elbow' is nan"),
        (NAMES, [1, 2, float("inf")], [0, 0, 0], [], "position of 'wrist' is inf"),
        (NAMES, [1, 2, 3], [0, NAN, 0], [], "velocity of 'elbow' is nan"),
        (("shoulder", "wrist"), [1, 3], [0, 0], [], "joint 'elbow' is missing"),
        ((*NAMES, "wrist"), [1, 2, 3, 4], [0] * 4, [], "joint 'wrist' appears 2 times"),
    ],
)
def test_f08_short_fields_are_rejected_and_empty_ones_are_legal(
    names: tuple[str, ...], position: list, velocity: list, effort: list, line: str
) -> None:
    found = reader(needs_effort=True)
    assert found.read(NAMES, [7, 8, 9], [1, 1, 1], [], 1) is None
    passed = found.read(names, position, velocity, effort, 2)
    assert passed is not None and line in passed.line
    np.testing.assert_array_equal(found.position, [7, 8, 9])


def test_missing_velocity_is_the_filtered_difference() -> None:
    for empty in ([], [NAN] * 3):  # a broadcaster without the interface writes NaN
        found = reader()
        for k in range(200):
            assert found.read(NAMES, [0.001 * k, 0, -0.002 * k], empty, [], k * MS + 1) is None
        assert found.velocity_measured is False
        np.testing.assert_allclose(found.velocity, [1, 0, -2], rtol=1e-3, atol=1e-9)


def test_velocity_that_was_there_and_is_gone_is_passed_over() -> None:
    found = reader()
    assert found.read(NAMES, [0, 0, 0], [0, 0, 0], [], 1) is None
    assert found.read(NAMES, [0, 0, 0], [], [], 2).reason == "velocity gone"  # type: ignore[union-attr]
    assert found.read(NAMES, [0, 0, 0], [NAN] * 3, [], 3).reason == "velocity not finite"  # type: ignore[union-attr]


def test_continuous_joints_go_on_across_pi() -> None:
    found = reader(continuous=True)
    angles = np.linspace(3.0, 3.5, 50)
    for k, angle in enumerate(angles):
        wrapped = (angle + np.pi) % (2 * np.pi) - np.pi
        assert found.read(NAMES, [wrapped, 0, 0], [1, 0, 0], [], k * MS) is None
    assert found.position[0] == pytest.approx(3.5)


def test_a_jump_of_an_encoder_is_named() -> None:
    found = reader(jump_limits=np.full(3, 10.0))
    assert found.read(NAMES, [0, 0, 0], [0, 0, 0], [], MS) is None
    passed = found.read(NAMES, [0, 0.5, 0], [0, 0, 0], [], 2 * MS)
    assert passed is not None and "'elbow' jumps from 0 to 0.5 in 1 ms" in passed.line
    assert found.read(NAMES, [0, 0.005, 0], [0, 0, 0], [], 3 * MS) is None


def keeper() -> Timekeeper:
    found = Timekeeper(max_age=0.05, jump=0.1)
    for k in range(100):
        assert found.judge(10**12 + k * MS, 10**12 + k * MS) == (Time.GOES_ON, None)
        found.accept(10**12 + k * MS, 10**12 + k * MS)
    return found


def test_time_is_judged_by_stamp_and_arrival() -> None:
    found, now = keeper(), 10**12 + 100 * MS
    assert found.rate == pytest.approx(1000.0)
    for stamp, reason in (
        (now - MS, "duplicate"),
        (now - 5 * MS, "out of order"),
        (now - 60 * MS, "too old"),
        (now + 60 * MS, "from the future"),
    ):
        verdict, passed = found.judge(stamp, now)
        assert verdict is Time.GOES_ON and passed is not None and passed.reason == reason
    assert "synchronise the clocks" in found.judge(now - 10**12, now)[1].line  # type: ignore[union-attr]
    assert found.judge(0, now) == (Time.GOES_ON, None)  # a stamp of 0 is the arrival


def test_f30_resets_and_jumps_of_the_clock_begin_anew() -> None:
    found = keeper()
    assert found.judge(10**9, 10**9) == (Time.JUMPED, None)  # simulation reset
    assert found.intervals == 0
    found = keeper()
    assert found.judge(2 * 10**12, 2 * 10**12) == (Time.JUMPED, None)
