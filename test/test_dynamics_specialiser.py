"""The graph folds what it can, the regrouped model is the same robot, and the code is as short as it should be."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_robots import RandomRobot, random_robots

from rnea_ros import InverseDynamics, load_urdf
from rnea_ros.dynamics import kernels, numba_source
from rnea_ros.dynamics.emission import single_source
from rnea_ros.dynamics.errors import DynamicsError
from rnea_ros.dynamics.expression import Graph, Node, program
from rnea_ros.dynamics.links import LinkSystem, link_system, rigid_body_torque
from rnea_ros.dynamics.recursion_backend import FLOATS
from rnea_ros.dynamics.regrouping import regroup
from rnea_ros.dynamics.specialiser import gravity_program, torque_program

URDF = Path(__file__).parents[1] / "urdf"


def test_what_is_equal_stands_once_and_zeros_vanish() -> None:
    graph = Graph()
    x, y = graph.input("x"), graph.input("y")
    assert x + y is y + x
    assert x * y is y * x
    assert x + 0.0 is x
    assert 1.0 * x is x
    assert -(0.0 - x) is x
    assert (0.0 * x).value == 0.0
    assert (x - x).value == 0.0
    assert x + (-1.0) * y is x - y
    assert -(x - y) is y - x
    assert (-x) * (-y) is x * y
    assert (-x) - y is -(x + y)
    assert 2.0 * (3.0 * x) is 6.0 * x
    assert (graph.constant(2.0) * 3.0 + 1.0).value == 7.0
    assert program([x * y + y, x * y]).operations == 2


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """Sums, differences, products and signs over x, y and small numbers."""
    leaf = st.sampled_from(["x", "y", "0.0", "1.0", "-1.0", "2.5"])
    return draw(
        st.recursive(
            leaf,
            lambda inner: st.one_of(
                st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
                inner.map(lambda t: f"(-{t})"),
            ),
            max_leaves=12,
        )
    )


@given(expressions(), st.floats(-3, 3), st.floats(-3, 3))
@settings(max_examples=200, deadline=None)
def test_printed_code_computes_what_was_written(text: str, x: float, y: float) -> None:
    graph = Graph()
    value = eval(text, {"x": graph.input("q0"), "y": graph.input("q1")})
    node = value if isinstance(value, Node) else graph.constant(value)
    source = single_source("kernel", "q", 2, [program([node, node])])
    names: dict = {}
    exec(source, names)
    expected = eval(text, {"x": x, "y": y})
    for result in names["kernel"]([x, y], []):
        assert result == pytest.approx(expected, rel=1e-12, abs=1e-9)


def torque(system: LinkSystem, state: np.ndarray, gravity: list[float], wrench: list[float] | None) -> np.ndarray:
    q, qd, qdd = state.tolist()
    return np.array(rigid_body_torque(system, q, qd, qdd, gravity, wrench, None, FLOATS))


@given(random_robots(mimic=True))
@settings(max_examples=60, deadline=None)
def test_regrouped_model_has_the_same_torque(made: RandomRobot) -> None:
    robot = load_urdf(made.xml)
    plain = link_system(robot)
    regrouped = regroup(plain)
    rng = made.rng
    state = rng.normal(size=(3, robot.n))
    wrench = rng.normal(size=6).tolist() if robot.tip else None
    gravity = rng.normal(scale=5, size=3).tolist()
    expected = torque(plain, state, gravity, wrench)
    np.testing.assert_allclose(
        torque(regrouped, state, gravity, wrench), expected, rtol=0, atol=1e-12 * max(1.0, np.abs(expected).max())
    )
    for index, link in enumerate(regrouped.links):
        assert link.axis == (0.0, 0.0, 1.0)
        if link.revolute and index != regrouped.tip:
            inertia = link.inertia
            assert (inertia.mass, inertia.first[2], inertia.second[2][2]) == (0.0, 0.0, 0.0)  # type: ignore[attr-defined]


@pytest.mark.parametrize(("file", "most", "least_saving"), [("panda.urdf", 660, 150), ("es5.urdf", 460, 70)])
def test_number_of_operations(file: str, most: int, least_saving: int) -> None:
    system = link_system(load_urdf(URDF / file))
    regrouped = torque_program(regroup(system))
    assert regrouped.operations <= most
    assert torque_program(system).operations - regrouped.operations >= least_saving
    assert gravity_program(regroup(system)).operations < 0.35 * regrouped.operations
    assert not any(name.startswith(("v", "a")) for name in gravity_program(regroup(system)).inputs)


def test_own_sine_and_cosine() -> None:
    """Absolute error below 3e-16 within ten thousand turns."""
    names: dict = {"math": math}
    exec(numba_source.sine_cosine_source(), names)
    rng = np.random.default_rng(0)
    angles = np.concatenate(
        [rng.uniform(-30, 30, 20_000), rng.uniform(-1, 1, 5_000) * numba_source.LARGE, np.arange(-40, 41) * math.pi / 4]
    )
    values = np.array([names["sine_cosine"](angle) for angle in angles.tolist()])
    # the mathematical library's, since NumPy's own vector code may be off by more
    expected = np.array([(math.sin(angle), math.cos(angle)) for angle in angles.tolist()])
    assert np.abs(values - expected).max() < 3e-16


def test_large_trees_take_a_bounded_path(monkeypatch: pytest.MonkeyPatch) -> None:
    robot = load_urdf(URDF / "panda.urdf")
    state = np.random.default_rng(1).normal(size=(3, 7))
    expected = InverseDynamics(robot, backend="recursion").torque(*state)
    monkeypatch.setattr(kernels, "NUMBA_OPERATIONS", 100)
    bounded = InverseDynamics(robot)
    assert bounded.backend == "python"
    np.testing.assert_allclose(bounded.torque(*state), expected, atol=1e-12)
    with pytest.raises(DynamicsError, match="operations, more than the 100"):
        InverseDynamics(robot, backend="numba")
    monkeypatch.setattr(kernels, "SPECIALISED_BODIES", 5)
    bounded = InverseDynamics(robot)
    assert bounded.backend == "recursion"
    np.testing.assert_allclose(bounded.torque(*state), expected, atol=1e-12)
