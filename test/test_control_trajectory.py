"""Trajectories and the reference: splines, refusals by name, splices without a bump."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rnea_ros.control.errors import Refusal
from rnea_ros.control.reference import Reference
from rnea_ros.control.trajectory import (
    Point,
    Spline,
    TrajectoryRequest,
    Waypoints,
    braking,
    checked,
    fading,
    spline_through,
    unwound,
)

NAMES = ("a", "b")
SLOW = np.full(2, 5.0)  # rad/s², braking
SECOND = 1_000_000_000
NAN = float("nan")

numbers = st.floats(-3.0, 3.0)
pairs = st.tuples(numbers, numbers)


def state(spline: Spline, seconds: float) -> np.ndarray:
    return spline.sample(spline.start + round(seconds * 1e9), np.zeros((3, 2)))


def waypoints(*points: Point) -> Waypoints:
    return checked(TrajectoryRequest(NAMES, points), NAMES)


def reference(continuous: bool = False) -> Reference:
    bound = np.full(2, np.inf if continuous else 3.0)
    return Reference(NAMES, -bound, bound, np.full(2, 10.0), np.full(2, continuous), 0.05)


def follow(target: Reference, request: TrajectoryRequest, now: int = SECOND) -> None:
    target.follow(request, now, tolerance=0.1, splice_time=0.25, deceleration=SLOW)


def advance(target: Reference, stamp: int) -> np.ndarray:
    return target.advance(stamp, 0.1, 0.25, SLOW).copy()


def test_orders_follow_from_what_is_given() -> None:
    line = spline_through(waypoints(Point(0.0, (0, 0)), Point(1.0, (1, 2))), 0, None, SLOW)
    np.testing.assert_allclose(state(line, 0.25), np.array([[0.25, 0.5], [1.0, 2.0], [0.0, 0.0]]), atol=1e-12)
    smooth = spline_through(waypoints(Point(0.0, (0, 0), (0, 0)), Point(1.0, (1, 2), (0, 0))), 0, None, SLOW)
    np.testing.assert_allclose(state(smooth, 0.25)[0], np.array([1, 2]) * (3 * 0.25**2 - 2 * 0.25**3), atol=1e-12)
    zero = (0, 0)
    jerk = spline_through(waypoints(Point(0.0, zero, zero, zero), Point(1.0, (1, 2), zero, zero)), 0, None, SLOW)
    minimum = 10 * 0.25**3 - 15 * 0.25**4 + 6 * 0.25**5
    np.testing.assert_allclose(state(jerk, 0.25)[0], np.array([1, 2]) * minimum, atol=1e-12)


@given(
    st.lists(st.tuples(pairs, pairs, pairs), min_size=2, max_size=5),
    st.lists(st.floats(0.05, 2.0), min_size=5, max_size=5),
)
def test_quintic_splines_meet_their_points_and_are_continuous(points: list, spans: list[float]) -> None:
    times = np.concatenate([[0.0], np.cumsum(spans)])
    spline = spline_through(
        waypoints(*(Point(float(t), *point) for t, point in zip(times, points, strict=False))), 0, None, SLOW
    )
    for t, (p, v, a) in list(zip(times, points, strict=False))[:-1]:
        size = max(1.0, float(np.abs(spline.coefficients).max()))
        np.testing.assert_allclose(state(spline, t), np.array([p, v, a]), atol=1e-7 * size)
        np.testing.assert_allclose(state(spline, max(t - 1e-9, 0.0)), np.array([p, v, a]), atol=1e-6 * size)


@given(pairs, pairs, pairs)
def test_braking_is_continuous_and_ends_at_rest(q: tuple, v: tuple, a: tuple) -> None:
    spline = braking(np.array([q, v, a]), SECOND, SLOW)
    np.testing.assert_allclose(state(spline, 0.0), [q, v, a], atol=1e-9)
    np.testing.assert_allclose(state(spline, spline.duration - 1e-9)[1:], 0.0, atol=1e-4)
    np.testing.assert_array_equal(state(spline, spline.duration + 1.0)[1:], 0.0)


@given(pairs, pairs, pairs, st.floats(0.01, 2.0))
def test_fading_takes_all_three_to_zero(q: tuple, v: tuple, a: tuple, span: float) -> None:
    spline = fading(np.array([q, v, a]), 0, span)
    np.testing.assert_allclose(state(spline, 0.0), [q, v, a], atol=1e-9)
    np.testing.assert_allclose(state(spline, span), 0.0, atol=1e-6)


def test_a_moving_end_is_followed_by_a_stop() -> None:
    spline = spline_through(waypoints(Point(0.0, (0, 0), (0, 0)), Point(1.0, (1, 0), (1, 0))), 0, None, SLOW)
    assert spline.duration > 1.0
    np.testing.assert_allclose(state(spline, 1.0 - 1e-9)[1], state(spline, 1.0 + 1e-9)[1], atol=1e-6)
    np.testing.assert_array_equal(state(spline, spline.duration)[1], 0.0)


@pytest.mark.parametrize(
    ("request_", "line"),
    [
        (TrajectoryRequest(("a", "c"), [Point(0, (0, 0))]), "unknown joint 'c'; controlled are a, b"),
        (TrajectoryRequest(("a",), [Point(0, (0,))]), "joint 'b' is missing"),
        (TrajectoryRequest(("a", "b", "a"), [Point(0, (0, 0, 0))]), "joint 'a' appears 2 times"),
        (TrajectoryRequest(NAMES, [Point(0, (0,))]), "point 0: 1 positions for 2 joints"),
        (TrajectoryRequest(NAMES, [Point(0, (0, 0), (1,))]), "point 0: 1 velocities for 2 joints"),
        (TrajectoryRequest(NAMES, [Point(0, (0, 0), (), (1, 2, 3))]), "point 0: 3 accelerations for 2 joints"),
        (TrajectoryRequest(NAMES, [Point(1, (0, 0)), Point(1, (0, 0))]), "point 1: time_from_start 1 s does not come"),
        (TrajectoryRequest(NAMES, [Point(-1, (0, 0))]), "point 0: time_from_start -1 s is negative"),
        (TrajectoryRequest(NAMES, [Point(NAN, (0, 0))]), "point 0: time_from_start is not finite"),
        (TrajectoryRequest(NAMES, [Point(0, (0, 0)), Point(1, (0, NAN))]), "point 1: position of 'b' is nan"),
        (TrajectoryRequest(NAMES, [Point(0, (0, 0), (NAN, 0))]), "point 0: velocity of 'a' is nan"),
        (TrajectoryRequest(NAMES, [Point(1, (0, 1e308))]), "point 0: position of 'b' is 1e.308, expected"),
        (TrajectoryRequest(NAMES, [Point(1, (0, 0), (1e308, 0))]), "point 0: velocity of 'a' is 1e.308, expected"),
        (TrajectoryRequest(NAMES, [Point(1, (0, 0), (0, 0), (0, -1e7))]), "point 0: acceleration of 'b' is -1e.07"),
    ],
)
def test_refusals_name_joint_and_point(request_: TrajectoryRequest, line: str) -> None:
    with pytest.raises(Refusal, match=line):
        checked(request_, NAMES)


def test_joints_are_reordered_by_name() -> None:
    found = checked(TrajectoryRequest(("b", "a"), [Point(0.0, (2, 1), (20, 10))]), NAMES)
    np.testing.assert_array_equal(found.positions, [[1, 2]])
    np.testing.assert_array_equal(found.velocities, [[10, 20]])


def test_continuous_joints_take_the_nearest_turn() -> None:
    there = unwound(
        waypoints(Point(0.0, (-3.1, 0)), Point(1.0, (-2.9, 0))), np.array([3.1, 0.0]), np.array([True, False])
    )
    np.testing.assert_allclose(there.positions[:, 0], [2 * np.pi - 3.1, 2 * np.pi - 2.9])


def test_limits_are_named() -> None:
    target = reference()
    with pytest.raises(Refusal, match=r"'b' goes to 3.5, outside its soft limits -3 .. 3"):
        follow(target, TrajectoryRequest(NAMES, [Point(1.0, (0, 3.5))]))
    with pytest.raises(Refusal, match="'a' reaches 20 rad/s, above its limit of 10 rad/s"):
        follow(target, TrajectoryRequest(NAMES, [Point(0.1, (2, 0))]))
    with pytest.raises(Refusal, match="starts at 0.5 in 'a', 0.5 from the last reference"):
        follow(target, TrajectoryRequest(NAMES, [Point(0.0, (0.5, 0)), Point(1.0, (1, 0))]))
    assert not target.moving


@settings(max_examples=50)
@given(st.lists(st.tuples(st.floats(0.02, 1.0), pairs, st.booleans()), min_size=1, max_size=5), st.integers(0, 10))
def test_any_sequence_of_motions_is_continuous(motions: list, seed: int) -> None:
    """Position, velocity and (but where a linear segment bends) acceleration never step, whatever interrupts what."""
    target, now, random = reference(), SECOND, np.random.default_rng(seed)
    before = advance(target, now)
    for wait, goal, with_velocity in motions:
        goal = np.clip(np.array(goal), -2.0, 2.0)
        rest = (0.0, 0.0)
        point = Point(2.0, tuple(goal), rest, rest) if with_velocity else Point(2.0, tuple(goal))
        if random.random() < 0.3:
            target.brake(now, SLOW)
        else:
            follow(target, TrajectoryRequest(NAMES, [point]), now)
        after = target.sample(now, np.zeros((3, 2)))
        np.testing.assert_allclose(after, before, atol=1e-9)
        for _ in range(int(wait * 100)):
            now += SECOND // 100
            after = advance(target, now)
            bound = 0.01 * (np.abs(before[1]) + np.abs(after[1])) + 2e-3
            assert (np.abs(after[0] - before[0]) <= bound).all()
            before = after


def test_a_past_start_starts_inside_and_a_future_one_waits() -> None:
    target = reference()
    rest = (0.0, 0.0)
    points = [Point(0.0, (0, 0), rest, rest), Point(2.0, (1, 0), rest, rest)]
    follow(target, TrajectoryRequest(NAMES, points, stamp=SECOND - SECOND // 4), SECOND)
    np.testing.assert_allclose(advance(target, SECOND)[0], 0.0, atol=1e-12)  # no step, though the plan is ahead
    plan = spline_through(waypoints(*points), SECOND - SECOND // 4, None, SLOW)
    late = SECOND + SECOND // 2
    np.testing.assert_allclose(advance(target, late), plan.sample(late, np.zeros((3, 2))), atol=1e-9)

    target = reference()
    follow(target, TrajectoryRequest(NAMES, points, stamp=2 * SECOND), SECOND)
    assert target.moving
    for k in range(101):
        np.testing.assert_array_equal(advance(target, SECOND + k * SECOND // 100)[0], 0.0)
    assert advance(target, 3 * SECOND)[0, 0] == pytest.approx(0.5)
    advance(target, 5 * SECOND)
    assert not target.moving
    with pytest.raises(Refusal, match="it ended 1 s ago"):
        follow(target, TrajectoryRequest(NAMES, points, stamp=SECOND), 4 * SECOND)


def test_a_waiting_trajectory_that_turns_out_too_far_is_refused_when_it_is_due() -> None:
    target = reference()
    follow(target, TrajectoryRequest(NAMES, [Point(0.0, (1, 0)), Point(1.0, (1.2, 0))], stamp=2 * SECOND), SECOND)
    with pytest.raises(Refusal, match="starts at 1 in 'a'"):
        advance(target, 2 * SECOND)
    assert not target.moving
    np.testing.assert_array_equal(target.state, 0.0)


@pytest.mark.parametrize("orders", [1, 2, 3])
def test_streamed_set_points_are_followed_without_steps(orders: int) -> None:
    target, now, period = reference(), SECOND, SECOND // 100
    before = advance(target, now)
    worst = 0.0
    for k in range(200):
        t = k * 0.01
        full = [(0.3 * (1 - np.cos(t)), 0.0), (0.3 * np.sin(t), 0.0), (0.3 * np.cos(t), 0.0)]
        target.stream(Point(0.0, *full[:orders]), now, now, 0.1)
        for _ in range(10):
            now += period // 10
            after = advance(target, now)
            assert np.abs(after[0] - before[0]).max() < 1e-3
            before = after
        if k > 50:
            worst = max(worst, abs(after[0, 0] - 0.3 * (1 - np.cos(t + 0.01))))
    assert worst < {1: 8e-3, 2: 1e-4, 3: 1e-5}[orders]
    assert not target.stale(now)
    assert target.stale(now + SECOND // 10)


@pytest.mark.parametrize(
    ("point", "line"),
    [
        (Point(0.0, (0,)), "reference: 1 positions for 2 joints"),
        (Point(0.0, (0, NAN)), "a value of 'b' is nan, expected a number"),
        (Point(0.0, (0, 1e308)), "a value of 'b' is 1e.308, expected a number"),
        (Point(0.0, (0, 0), (0, 0), (1e308, 0)), "a value of 'a' is 1e.308, expected a number"),
        (Point(0.0, (0, 1)), "reference: starts at 1 in 'b'"),
        (Point(0.0, (0, 0), (0, 11)), "'b' is asked to exceed its speed limit"),
    ],
)
def test_bad_set_points_are_refused(point: Point, line: str) -> None:
    target = reference()
    with pytest.raises(Refusal, match=line):
        target.stream(point, SECOND, SECOND, 0.1)
    assert not target.moving


def test_references_are_held_inside_the_soft_limits() -> None:
    target = reference()
    target.move_from(np.array([[2.9, 0.0], [2.0, 0.0], [0.0, 0.0]]))
    target.brake(SECOND, SLOW)
    for k in range(100):
        assert advance(target, SECOND + k * SECOND // 100)[0, 0] <= 3.0


def test_no_number_of_turns_is_made_of_a_huge_position() -> None:
    target = reference(continuous=True)
    with pytest.raises(Refusal, match="position of 'a' is 1e.308"):
        follow(target, TrajectoryRequest(NAMES, [Point(1.0, (1e308, 0.0))]))
    with pytest.raises(Refusal, match="a value of 'a' is 1e.308"):
        target.stream(Point(0.0, (1e308, 0.0)), SECOND, SECOND, 0.1)
    assert not target.moving
