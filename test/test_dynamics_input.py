"""Bad input is refused with a line that names the argument and the joint; odd input gives the right answer."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rnea_ros import InverseDynamics, load_urdf
from rnea_ros.dynamics import native_call, numba_backend
from rnea_ros.dynamics.errors import DynamicsError
from rnea_ros.dynamics.results import Payload

URDF = Path(__file__).parents[1] / "urdf"
BACKENDS = ("numba", "python", "recursion")
N = 7
State = tuple[np.ndarray, np.ndarray, np.ndarray]


@pytest.fixture(scope="module", params=BACKENDS)
def panda(request: pytest.FixtureRequest) -> InverseDynamics:
    return InverseDynamics(load_urdf(URDF / "panda.urdf"), backend=request.param)


@pytest.fixture(scope="module")
def state() -> State:
    q, qd, qdd = np.random.default_rng(8).uniform(-1.5, 1.5, (3, N))
    return q, qd, qdd


BAD: dict[str, tuple[Any, str]] = {
    "too short": (np.zeros(N - 1), r"\(6,\), expected \(7,\)"),
    "too long": (np.zeros(N + 1), r"\(8,\)"),
    "a number": (1.0, r"shape \(\)"),
    "three axes": (np.zeros((2, 2, N)), r"\(2, 2, 7\)"),
    "transposed": (np.zeros((N, 2)), r"\(7, 2\)"),
    "ragged": ([[0.0] * N, [0.0]], "ragged"),
    "None": (None, "dtype object"),
    "text": ("home", "real numbers"),
    "complex": (np.zeros(N, complex), "complex128"),
    "truth values": (np.zeros(N, bool), "bool"),
    "masked": (np.ma.masked_equal(np.arange(N), 3), "masked"),
    "NaN": (np.array([0, 0, 0, np.nan, 0, 0, 0]), "'panda_joint4' is nan"),
    "infinity": (np.array([0, 0, 0, 0, 0, 0, -np.inf]), "'panda_joint7' is -inf"),
    "NaN as an integer's neighbour": ([0, 1, np.nan, 0, 0, 0, 0], "'panda_joint3' is nan"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("position", [0, 1, 2])
def test_bad_arrays_are_named(panda: InverseDynamics, case: str, position: int) -> None:
    value, message = BAD[case]
    arguments: list[Any] = [np.zeros(N), np.zeros(N), np.zeros(N)]
    arguments[position] = value
    with pytest.raises(DynamicsError, match=message) as caught:
        panda.torque(*arguments)
    assert str(caught.value).split()[0] == ("q", "qd", "qdd")[position]
    assert "\n" not in str(caught.value)
    if position == 0:
        for method in (panda.gravity_torque, panda.mass_matrix, panda.potential_energy):
            with pytest.raises(DynamicsError, match=message):
                method(value)


def test_a_bad_state_among_many_is_named(panda: InverseDynamics) -> None:
    q = np.zeros((200, N))
    q[130, 2] = np.nan
    with pytest.raises(DynamicsError, match="q of joint 'panda_joint3' in state 130 is nan"):
        panda.torque(q, np.zeros_like(q), np.zeros_like(q))
    with pytest.raises(DynamicsError, match=r"qd has shape \(199, 7\), but q has \(200, 7\)"):
        panda.torque(np.zeros((200, N)), np.zeros((199, N)), np.zeros((200, N)))


ODD: dict[str, Callable[[np.ndarray], Any]] = {
    "list": lambda x: x.tolist(),
    "tuple": tuple,
    "single precision": lambda x: x.astype(np.float32),
    "extended precision": lambda x: x.astype(np.longdouble),
    "big-endian": lambda x: x.astype(">f8"),
    "every other of a longer array": lambda x: np.repeat(x, 2)[::2],
    "backwards in memory": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "column of a matrix": lambda x: np.stack([x, x], axis=1)[:, 0],
    "unaligned": lambda x: np.frombuffer(b"\0" + x.tobytes(), dtype=np.uint8)[1:].view(np.float64),
}


@pytest.mark.parametrize("case", ODD)
def test_odd_arrays_give_the_right_answer(panda: InverseDynamics, state: State, case: str) -> None:
    odd = [ODD[case](x) for x in state]
    same = [np.array(x, dtype=np.float64) for x in odd]
    np.testing.assert_array_equal(panda.torque(*odd), panda.torque(*same))
    np.testing.assert_array_equal(panda.gravity_torque(odd[0]), panda.gravity_torque(same[0]))


def test_read_only_and_integer_arrays(panda: InverseDynamics, state: State) -> None:
    q, qd, qdd = (x.copy() for x in state)
    for array in (q, qd, qdd):
        array.setflags(write=False)
    np.testing.assert_array_equal(panda.torque(q, qd, qdd), panda.torque(*state))
    whole = np.array([0, 1, -1, 2, 0, 1, 3])
    expected = panda.torque(whole.astype(float), whole.astype(float), whole.astype(float))
    np.testing.assert_array_equal(panda.torque(whole, whole, whole), expected)


def test_columns_of_many_states(panda: InverseDynamics) -> None:
    q, qd, qdd = np.random.default_rng(1).normal(size=(3, N, 150))
    expected = panda.torque(*(np.ascontiguousarray(x.T) for x in (q, qd, qdd)))
    np.testing.assert_array_equal(panda.torque(q.T, qd.T, qdd.T), expected)


def test_empty_batch(panda: InverseDynamics) -> None:
    none = np.zeros((0, N))
    assert panda.torque(none, none, none).shape == (0, N)
    assert panda.gravity_torque(none).shape == (0, N)
    assert panda.mass_matrix(none).shape == (0, N, N)
    assert panda.coriolis_matrix(none, none).shape == (0, N, N)
    assert panda.regressor(none, none, none).shape == (0, N, 10 * N)
    assert panda.acceleration(none, none, none).shape == (0, N)


def test_angles_far_beyond_a_turn(panda: InverseDynamics) -> None:
    """Positions of a thousand and of a hundred million turns are still positions."""
    for turns in (1e3, 1e8):
        q = turns * 2 * np.pi + np.linspace(0.1, 0.7, N)
        expected = InverseDynamics(panda.robot, backend="recursion").gravity_torque(q)
        np.testing.assert_allclose(panda.gravity_torque(q), expected, atol=1e-11)
        np.testing.assert_allclose(panda.gravity_torque(np.tile(q, (70, 1)))[69], expected, atol=1e-11)


def test_out(panda: InverseDynamics, state: State) -> None:
    expected = panda.torque(*state)
    out = np.empty(N)
    assert panda.torque(*state, out=out) is out
    np.testing.assert_array_equal(out, expected)
    apart = np.empty(2 * N)[::2]
    assert panda.torque(*state, out=apart) is apart
    np.testing.assert_array_equal(apart, expected)
    over: State = (state[0].copy(), state[1].copy(), state[2].copy())
    np.testing.assert_array_equal(panda.torque(*over, out=over[0]), expected)
    many: State = (np.tile(state[0], (100, 1)), np.tile(state[1], (100, 1)), np.tile(state[2], (100, 1)))
    many_expected = panda.torque(*many)
    np.testing.assert_array_equal(panda.torque(*many, out=many[2]), many_expected)
    held = panda.gravity_torque(state[0])
    np.testing.assert_array_equal(panda.gravity_torque(state[0], out=out), held)
    wrench = np.arange(6.0)
    np.testing.assert_array_equal(panda.torque(*state, wrench, out=out), panda.torque(*state, wrench))


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (np.empty(N - 1), r"out has shape \(6,\)"),
        (np.empty(N, np.float32), "out is dtype float32"),
        ([0.0] * N, "out is list"),
        (np.broadcast_to(0.0, N), "out is read-only"),
    ],
)
def test_bad_out(panda: InverseDynamics, state: State, out: Any, message: str) -> None:
    with pytest.raises(DynamicsError, match=message):
        panda.torque(*state, out=out)
    with pytest.raises(DynamicsError, match=message):
        panda.gravity_torque(state[0], out=out)


def test_bad_wrench_gravity_and_payload(panda: InverseDynamics, state: State) -> None:
    for wrench in (np.zeros(3), np.zeros((2, 6)), np.full(6, np.nan), "push"):
        with pytest.raises(DynamicsError, match="wrench"):
            panda.torque(*state, wrench)
    for gravity in (9.81, [0.0, 0.0], [0.0, 0.0, np.inf]):
        with pytest.raises(DynamicsError, match="gravity"):
            panda.gravity = gravity
    impossible: list[tuple[Any, str]] = [
        (Payload(-1.0), "mass is negative"),
        (Payload(1.0, (0.0, 0.0)), "centre of mass"),
        (Payload(1.0, None, np.diag([1.0, 1.0, 3.0])), "triangle"),
        (Payload(1.0, frame="panda_link3"), "on 'panda_link3'.*with_payload"),
        (Payload(1.0, frame="nowhere"), "unknown frame 'nowhere'"),
        (3.0, "Payload nor a tuple"),
    ]
    before = panda.torque(*state)
    for payload, message in impossible:
        with pytest.raises(DynamicsError, match=message):
            panda.payload = payload
    assert panda.payload is None
    np.testing.assert_array_equal(panda.torque(*state), before)


def test_several_leaves_and_no_tip() -> None:
    hand = InverseDynamics(load_urdf(URDF / "panda_hand.urdf"), backend="python")
    still = np.zeros(hand.robot.n)
    for attempt in (lambda: hand.torque(still, still, still, np.zeros(6)), lambda: setattr(hand, "payload", (1.0,))):
        with pytest.raises(DynamicsError, match="several leaves .*panda_leftfinger.*panda_rightfinger"):
            attempt()


def test_bad_construction() -> None:
    with pytest.raises(DynamicsError, match="expected a RobotModel"):
        InverseDynamics("panda.urdf")  # type: ignore[arg-type]
    with pytest.raises(DynamicsError, match="unknown backend 'cuda'"):
        InverseDynamics(load_urdf(URDF / "es5.urdf"), backend="cuda")  # type: ignore[arg-type]


def test_tilted_base_is_a_tilted_gravity(panda: InverseDynamics, state: State) -> None:
    """g is linear in the gravity vector, which can be set at any time."""
    parts = np.zeros(N)
    for axis, strength in enumerate((1.0, -2.0, -9.0)):
        panda.gravity = strength * np.eye(3)[axis]
        parts += panda.gravity_torque(state[0])
    panda.gravity = (1.0, -2.0, -9.0)
    np.testing.assert_allclose(panda.gravity_torque(state[0]), parts, atol=1e-12)
    panda.gravity = (0.0, 0.0, -9.81)


@pytest.mark.parametrize("backend", BACKENDS)
def test_memory_of_a_batch(backend: str) -> None:
    """Below three times inputs and outputs, and linear in the number of states."""
    panda = InverseDynamics(load_urdf(URDF / "panda.urdf"), backend=backend)  # type: ignore[arg-type]
    panda.torque(*np.zeros((3, 2, N)))
    for states in (20_000, 80_000):
        q, qd, qdd = np.zeros((3, states, N))
        tracemalloc.start()
        panda.torque(q, qd, qdd)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak + 3 * q.nbytes < 3 * 4 * q.nbytes
        assert peak < 1.5 * q.nbytes + 4e6


def test_without_the_builtin(monkeypatch: pytest.MonkeyPatch, state: State) -> None:
    """Where objects do not lie in memory as expected, Numba's own calls serve."""
    fast = InverseDynamics(load_urdf(URDF / "panda.urdf"), backend="numba")
    monkeypatch.setattr(native_call, "supported", lambda: False)
    slow = InverseDynamics(load_urdf(URDF / "panda.urdf"), backend="numba")
    np.testing.assert_allclose(slow.torque(*state), fast.torque(*state), rtol=1e-13)
    assert isinstance(slow._kernel.single, numba_backend.numba.core.registry.CPUDispatcher)
    with pytest.raises(DynamicsError, match="qd has shape"):
        slow.torque(state[0], np.zeros(3), state[2])
    with pytest.raises(DynamicsError, match="out is read-only"):
        slow.torque(*state, out=np.broadcast_to(0.0, N))


def test_a_compiled_function_outlives_the_robot_that_it_was_made_for() -> None:
    pytest.importorskip("numba")
    if not native_call.supported():
        pytest.skip("another interpreter: Numba's own functions are used")
    dynamics = InverseDynamics(load_urdf(URDF / "planar_2r.urdf"), backend="numba")
    q, out = np.array([0.3, -0.4]), np.empty(2)
    expected, inputs, gravity = dynamics.gravity_torque(q), dynamics._inputs, dynamics._kernel.gravity
    del dynamics
    numba_backend.compiled_function.cache_clear()
    gc.collect()
    junk = [bytes(range(1, size)) for size in (33, 49, 65) for _ in range(1000)]  # over what was freed
    assert (gravity.__name__, len(junk)) == ("kernel", 3000)
    assert gravity(q, inputs, out)
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize(
    "value",
    [(1 + 2j,), (10**400,), (b"2",), ("2",), (1.0, [1j, 0, 0]), (1.0, np.ma.masked_equal([0.0, 1.0, 2.0], 1.0))],
)
def test_a_payload_that_is_not_of_real_numbers_is_refused(panda: InverseDynamics, value: Any) -> None:
    with pytest.raises(DynamicsError, match="payload: .* is not numeric"):
        panda.payload = value
    assert panda.payload is None


@pytest.mark.parametrize("frame", [3, ["panda_link7"], {}, np.zeros(3)])
def test_a_payload_frame_that_is_no_name_is_refused(panda: InverseDynamics, frame: Any) -> None:
    with pytest.raises(DynamicsError, match="unknown frame"):
        panda.payload = (1.0, (0.0, 0.0, 0.0), None, frame)
