"""The rate of the joint states, as far as faults rest on it."""

from __future__ import annotations

from rnea_ros.control.timekeeping import Timekeeper

MILLISECOND = 1_000_000


def run(keeper: Timekeeper, now: int, interval: float, count: int) -> int:
    for _ in range(count):
        now += round(interval * MILLISECOND)
        keeper.accept(now, now)
    return now


def test_one_pause_is_no_rate() -> None:
    keeper = Timekeeper(max_age=0.05, jump=0.5)
    now = run(keeper, 0, 1.0, 200)
    run(keeper, now, 120.0, 1)
    assert keeper.rate > 800.0


def test_a_slower_stream_is_known_after_a_few_states() -> None:
    keeper = Timekeeper(max_age=0.05, jump=0.5)
    now = run(keeper, 0, 1.0, 200)
    run(keeper, now, 10.0, 20)
    assert keeper.rate < 200.0
    run(keeper, now + 200 * MILLISECOND, 10.0, 100)
    assert abs(keeper.rate - 100.0) < 1.0
