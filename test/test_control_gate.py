"""The gate: what leaves never breaks a limit, and gravity support is never cut."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rnea_ros.control.gate import Gate

PERIOD = 1e-3
LIMIT = np.array([10.0, 20.0, 5.0])
RATE = np.array([100.0, 500.0, 1000.0])

torques = arrays(float, 3, elements=st.floats(-1e6, 1e6))
supports = arrays(float, 3, elements=st.floats(-5.0, 5.0))
anything = arrays(float, 3, elements=st.floats(allow_nan=True, allow_infinity=True))


def gate() -> Gate:
    return Gate(LIMIT.copy(), RATE.copy(), PERIOD)


@given(st.lists(st.tuples(supports, anything, st.floats(-0.01, 1.0)), max_size=20))
def test_f20_f35_no_command_is_over_limit_over_rate_or_not_finite(cycles: list) -> None:
    found, out, before = gate(), np.zeros(3), np.zeros(3)
    for support, desired, measured in cycles:
        finite = found.apply(support, np.zeros(3), desired, measured, out)
        assert np.isfinite(out).all()
        assert (np.abs(out) <= LIMIT + 1e-9).all()
        dt = min(max(measured, 0.0), PERIOD)
        assert (np.abs(out - before) <= RATE * dt + 1e-9).all()
        if not np.isfinite(desired).all() and np.isnan(desired).any():
            assert not finite
        before = out.copy()


@given(supports, torques)
def test_f18_gravity_support_is_never_cut(support: np.ndarray, desired: np.ndarray) -> None:
    out = np.zeros(3)
    gate().bounded(support, np.zeros(3), desired, out)
    rest = out - support
    assert (np.sign(rest) * np.sign(desired - support) >= 0.0).all()  # never beyond the support to the other side
    assert (np.abs(out) <= LIMIT + 1e-9).all()
    inside = np.abs(desired) <= LIMIT
    np.testing.assert_allclose(out[inside], desired[inside], atol=1e-9)


def test_support_beyond_the_limit_stands_at_the_limit() -> None:
    out = np.zeros(3)
    gate().bounded(np.array([15.0, -30.0, 4.0]), np.zeros(3), np.array([16.0, -20.5, 4.0]), out)
    np.testing.assert_array_equal(out, [10.0, -20.0, 4.0])


def test_the_share_of_the_robot_counts_for_the_limit() -> None:
    found, out = gate(), np.zeros(3)
    found.bounded(np.zeros(3), np.array([8.0, -8.0, 0.0]), np.array([9.0, 9.0, 9.0]), out)
    np.testing.assert_array_equal(out, [2.0, 9.0, 5.0])
    np.testing.assert_array_equal(found.clamped, [True, False, True])


def test_the_rate_uses_the_smaller_of_measured_and_nominal() -> None:
    for measured, step in ((0.5e-3, 0.05), (5e-3, 0.1), (0.0, 0.0), (-1.0, 0.0)):
        found, out = gate(), np.zeros(3)
        found.apply(np.zeros(3), np.zeros(3), np.array([9.0, 0.0, 0.0]), measured, out)
        np.testing.assert_allclose(out, [step, 0.0, 0.0])
        assert found.slowed[0]
