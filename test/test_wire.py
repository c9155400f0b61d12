"""The wire format against the middleware's own (de)serialisation, and against bytes that are no message."""

from __future__ import annotations

import itertools
import struct
from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rnea_ros.nodes.wire import (
    EncapsulationError,
    JointStateDecoder,
    JointStateEncoder,
    WireError,
    decode_array,
    decode_header,
    encode_array,
    encode_header,
)

ORDERS = {"<": b"\x00\x01", ">": b"\x00\x00"}
stamps = st.integers(-(2**31) * 10**9, 2**31 * 10**9 - 1)
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=9)
doubles = st.lists(st.floats(), max_size=5)
states = st.builds(
    lambda stamp, frame_id, names, position, velocity, effort: SimpleNamespace(
        stamp=stamp, frame_id=frame_id, names=tuple(names), position=position, velocity=velocity, effort=effort
    ),
    stamps, texts, st.lists(texts, max_size=4), doubles, doubles, doubles,
)  # fmt: skip


class Encoder:
    """CDR as the specification has it, written without looking at the code under test."""

    def __init__(self, order="<", gap=0):
        self.order, self.gap = order, bytes([gap])
        self.body = b""

    def number(self, kind, value):
        size = struct.calcsize(kind)
        self.body += self.gap * (-len(self.body) % size) + struct.pack(self.order + kind, value)

    def string(self, text):
        characters = text.encode() + b"\0"
        self.number("I", len(characters))
        self.body += characters

    def doubles(self, values):
        self.number("I", len(values))
        for value in values:
            self.number("d", value)

    def joint_state(self, state):
        self.number("i", state.stamp // 10**9)
        self.number("I", state.stamp % 10**9)
        self.string(state.frame_id)
        self.number("I", len(state.names))
        for name in state.names:
            self.string(name)
        for values in (state.position, state.velocity, state.effort):
            self.doubles(values)
        return ORDERS[self.order] + b"\0\0" + self.body


def state_of(names, position=(), velocity=(), effort=(), stamp=5, frame_id=""):
    return SimpleNamespace(
        stamp=stamp, frame_id=frame_id, names=tuple(names), position=position, velocity=velocity, effort=effort
    )


def bits(values):
    return np.asarray(values, dtype=np.float64).tobytes()  # distinguishes -0.0 and each NaN


def content(decoder):
    return decoder.stamp, decoder.names, bits(decoder.position), bits(decoder.velocity), bits(decoder.effort)


def expected(state):
    return state.stamp, state.names, bits(state.position), bits(state.velocity), bits(state.effort)


def decoded_by_the_middleware(data):
    serialization = pytest.importorskip("rclpy.serialization", reason="the judge is rclpy")
    from sensor_msgs.msg import JointState

    message = serialization.deserialize_message(data, JointState)
    stamp = message.header.stamp.sec * 10**9 + message.header.stamp.nanosec
    return stamp, tuple(message.name), bits(message.position), bits(message.velocity), bits(message.effort)


def as_message(state):
    message_types = pytest.importorskip("sensor_msgs.msg", reason="the judge is rclpy")
    message = message_types.JointState(name=list(state.names))
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(state.stamp, 10**9)
    message.header.frame_id = state.frame_id
    message.position, message.velocity, message.effort = state.position, state.velocity, state.effort
    return message


@given(st.lists(states, min_size=1, max_size=4))
def test_reads_what_the_middleware_writes(sequence):
    serialization = pytest.importorskip("rclpy.serialization", reason="the judge is rclpy")
    decoder = JointStateDecoder()
    for state in sequence:
        decoder.decode(serialization.serialize_message(as_message(state)))
        assert content(decoder) == expected(state)


@given(st.lists(st.tuples(states, st.sampled_from("<>"), st.integers(0, 255)), min_size=1, max_size=4))
def test_reads_both_byte_orders_with_any_gap(sequence):
    decoder = JointStateDecoder()
    for state, order, gap in sequence:
        data = Encoder(order, gap).joint_state(state)
        decoder.decode(data)
        assert content(decoder) == expected(state) == decoded_by_the_middleware(data)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("known", [True, False])
def test_every_truncation_is_refused_and_changes_nothing(order, known):
    state = state_of(["shoulder", "elbow"], [1.0, 2.0], [3.0, 4.0], [5.0, 6.0], frame_id="base")
    whole = Encoder(order).joint_state(state)
    decoder = JointStateDecoder()
    if known:
        decoder.decode(whole)
    before = content(decoder)
    for size in range(len(whole)):
        with pytest.raises(WireError):
            decoder.decode(whole[:size])
        assert content(decoder) == before
    decoder.decode(whole)
    assert content(decoder) == expected(state)


@given(states, st.sampled_from("<>"), st.binary(max_size=12), st.booleans(), st.data())
def test_corrupt_bytes_are_refused_or_read_as_the_middleware_reads_them(state, order, tail, known, data):
    whole = Encoder(order).joint_state(state)
    decoder = JointStateDecoder()
    if known:
        decoder.decode(whole)
    before = content(decoder)
    corrupt = bytearray(whole + tail)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(2, len(corrupt) - 1))
        corrupt[at] = data.draw(st.sampled_from([0, 1, 2, 4, 127, 255]))
    try:
        decoder.decode(bytes(corrupt))
    except WireError:
        assert content(decoder) == before
    else:
        assert content(decoder) == decoded_by_the_middleware(bytes(corrupt))


@given(st.binary(max_size=80), st.sampled_from(list(ORDERS.values())))
def test_arbitrary_bytes_are_refused_or_read_as_the_middleware_reads_them(body, encapsulation):
    decoder = JointStateDecoder()
    data = encapsulation + body
    try:
        decoder.decode(data)
    except WireError:
        assert content(decoder) == content(JointStateDecoder())
    else:
        assert content(decoder) == decoded_by_the_middleware(data)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (state_of(["a", "bc"], [1.0, 2.0]), state_of(["ab", "c"], [3.0, 4.0])),
        (state_of(["a"], [1.0], [2.0], []), state_of(["a"], [3.0], [], [4.0])),
        (state_of(["a"], [1.0, 2.0], [3.0]), state_of(["a"], [4.0], [5.0, 6.0])),
        (state_of(["a"], [1.0], frame_id="x"), state_of(["b"], [2.0], frame_id="y")),
    ],
    ids=["names", "empty fields", "lengths", "frame_id"],
)
def test_layouts_of_one_length_are_told_apart(first, second):
    decoder = JointStateDecoder()
    for state in (first, second, first):
        decoder.decode(Encoder().joint_state(state).ljust(80, b"\0"))  # bytes after the end are legal
        assert content(decoder) == expected(state)


def test_the_layout_is_learnt_once():
    decoder = JointStateDecoder()
    frame_ids, gaps = ["one", "two"], [0, 255]
    objects = set()
    for frame_id, gap in itertools.product(frame_ids, gaps):
        state = state_of(["a", "b"], [1.0, 2.0], [3.0, 4.0], [], frame_id=frame_id)
        decoder.decode(Encoder(gap=gap).joint_state(state))
        objects.add((id(decoder.names), id(decoder.position), id(decoder.velocity), id(decoder.effort)))
    assert len(objects) == 1


def test_names_stay_the_same_object_while_they_are_the_same():
    decoder = JointStateDecoder()
    decoder.decode(Encoder().joint_state(state_of(["a", "b"], [1.0, 2.0])))
    names = decoder.names
    decoder.decode(Encoder(">").joint_state(state_of(["a", "b"], [1.0, 2.0], [3.0, 4.0], frame_id="base")))
    assert decoder.names is names
    decoder.decode(Encoder().joint_state(state_of(["b", "a"], [1.0, 2.0])))
    assert decoder.names == ("b", "a")


def test_another_encapsulation_goes_to_the_typed_decoder():
    data = b"\x00\x07\x00\x00" + Encoder().joint_state(state_of(["a"]))[4:]
    message = SimpleNamespace(
        header=SimpleNamespace(stamp=SimpleNamespace(sec=3, nanosec=4)),
        name=["a"],
        position=[1.0],
        velocity=[],
        effort=[],
    )
    plain = Encoder().joint_state(state_of(["a"], [9.0]))
    decoder = JointStateDecoder(typed=lambda _: message)
    for _ in range(2):  # the views of the layout before must not come back
        decoder.decode(plain)
        assert decoder.position.tolist() == [9.0]
        decoder.decode(data)
        assert content(decoder) == expected(state_of(["a"], [1.0], stamp=3 * 10**9 + 4))
    with pytest.raises(EncapsulationError, match="0x0007"):
        JointStateDecoder().decode(data)


def test_what_the_typed_decoder_cannot_read_either_is_refused():
    def fails(_):
        raise RuntimeError("no such encoding")

    for read in (
        JointStateDecoder(typed=fails).decode,
        lambda data: decode_array(data, fails),
        lambda data: decode_header(data, fails),
    ):
        with pytest.raises(WireError, match="no such encoding"):
            read(b"\x00\x09\x00\x00" + bytes(20))


@given(states, st.booleans())
def test_writes_joint_states_that_the_middleware_reads(state, fresh):
    encoder = JointStateEncoder(state.names, state.frame_id)
    if not fresh:
        encoder.encode(1, [2.0])
    data = encoder.encode(state.stamp, state.position, state.velocity, state.effort)
    assert decoded_by_the_middleware(data) == expected(state)
    decoder = JointStateDecoder()
    decoder.decode(data)
    assert content(decoder) == expected(state)


@given(doubles)
def test_writes_and_reads_arrays_as_the_middleware_does(values):
    data = encode_array(np.array(values))
    assert bits(decode_array(data)) == bits(values)
    serialization = pytest.importorskip("rclpy.serialization", reason="the judge is rclpy")
    from std_msgs.msg import Float64MultiArray, MultiArrayDimension, MultiArrayLayout

    message = serialization.deserialize_message(data, Float64MultiArray)
    assert bits(message.data) == bits(values)
    assert (message.layout.dim, message.layout.data_offset) == ([], 0)
    layout = MultiArrayLayout(dim=[MultiArrayDimension(label="joint", size=2, stride=3)] * 2, data_offset=1)
    data = serialization.serialize_message(Float64MultiArray(layout=layout, data=values))
    assert bits(decode_array(data)) == bits(values)


@given(stamps, texts)
def test_writes_and_reads_headers_as_the_middleware_does(stamp, frame_id):
    data = encode_header(stamp, frame_id)
    assert decode_header(data) == (stamp, frame_id)
    serialization = pytest.importorskip("rclpy.serialization", reason="the judge is rclpy")
    from std_msgs.msg import Header

    message = serialization.deserialize_message(data, Header)
    assert (message.stamp.sec * 10**9 + message.stamp.nanosec, message.frame_id) == (stamp, frame_id)
    assert data == serialization.serialize_message(message)


@pytest.mark.parametrize("order", "<>")
def test_every_truncation_of_arrays_and_headers_is_refused(order):
    body, head = Encoder(order), Encoder(order)
    body.number("I", 0)
    body.number("I", 0)
    body.doubles([1.0, 2.0])
    head.number("i", -2)
    head.number("I", 3)
    head.string("tracking")
    array, header = (ORDERS[order] + b"\0\0" + encoder.body for encoder in (body, head))
    assert decode_array(array).tolist() == [1.0, 2.0]
    assert decode_header(header) == (-2 * 10**9 + 3, "tracking")
    for data, read in ((array, decode_array), (header, decode_header)):
        for size in range(len(data)):
            with pytest.raises(WireError):
                read(data[:size])


@given(st.binary(max_size=40))
def test_hostile_arrays_and_headers_are_refused_or_read(body):
    for read in (decode_array, decode_header):
        for encapsulation in ORDERS.values():
            with suppress(WireError):
                read(encapsulation + b"\0\0" + body)


def test_a_name_with_a_nul_is_not_written():
    with pytest.raises(WireError, match="NUL"):
        JointStateEncoder(["a\0b"])
    with pytest.raises(WireError, match="NUL"):
        encode_header(0, "a\0b")
