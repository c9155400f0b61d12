"""The bytes of JointState, Float64MultiArray and Header messages, read and written without building Python messages.

ROS 2 middlewares carry messages as plain CDR, encoding version 1: OMG DDSI-RTPS 2.5, clause 10 (encapsulation) and
OMG DDS-XTypes 1.3, clause 7.4.1 (encoding):

    bytes 0-1   representation identifier: 0x0000 CDR_BE, 0x0001 CDR_LE
    bytes 2-3   options; the last two bits count the bytes of padding at the very end
    bytes 4-    the body: a number of size s stands at a multiple of s counted from byte 4, and the gap before it has
                any value
    string      uint32 length that counts the closing NUL, then the characters and the NUL
    sequence    uint32 count, then the elements; an empty sequence has no gap before its absent first element

    Header              int32 sec, uint32 nanosec, string frame_id
    JointState          Header, sequence<string> name, sequence<double> position, velocity, effort
    Float64MultiArray   sequence<string label, uint32 size, uint32 stride> dim, uint32 data_offset,
                        sequence<double> data

Bytes after the end are allowed (Fast DDS leaves some there). Bytes that break a rule raise `WireError`. Another
encapsulation goes to `typed`, the middleware's own decoder, where the caller gives one: a function from bytes to the
ROS message, as `rclpy.serialization.deserialize_message`.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
Typed = Callable[[bytes], Any]

_BODY = 4  # where the body starts, after the encapsulation header
_ORDER = {b"\x00\x00": ">", b"\x00\x01": "<"}
_NATIVE = {"big": ">", "little": "<"}[sys.byteorder]
_PREFIX = {">": b"\x00\x00\x00\x00", "<": b"\x00\x01\x00\x00"}[_NATIVE]
_UINT32 = struct.Struct("=I")
_STAMP = struct.Struct("=iI")
_ARRAY = struct.Struct("=III")  # dimensions, data_offset, count
_SECOND = 1_000_000_000  # ns


class WireError(ValueError):
    """Bytes that are not the message they should be."""


class EncapsulationError(WireError):
    """Not plain CDR: the middleware may be able to read it, this module is not."""


class JointStateDecoder:
    """Reads serialised sensor_msgs/JointState in place.

    After `decode` the attributes hold the message, and the next `decode` overwrites or replaces them:

    stamp     header.stamp in ns
    names     in the message's order; the same object for as long as the names are the same
    position, velocity, effort
              float64, as long as the message makes them, NaN and infinities included. Which of them are needed and how
              they map to a robot's joints is for `control` to say.
    """

    def __init__(self, typed: Typed | None = None) -> None:
        self.stamp = 0
        self.names: tuple[str, ...] = ()
        self.position: Array = np.empty(0)
        self.velocity: Array = np.empty(0)
        self.effort: Array = np.empty(0)
        self._typed = typed
        self._length = -1  # of the messages whose layout is known
        self._mask = self._fixed = 0
        self._stamp = _STAMP
        self._bytes = memoryview(b"")
        self._swapped: list[tuple[Array, Array]] = []  # (native, other byte order), where the message has the other

    def decode(self, data: bytes) -> None:
        """Take over one message. After a `WireError` everything is as it was before."""
        # With the same length and the same bytes in all places that decide the layout, the layout is the one we know.
        if len(data) != self._length or int.from_bytes(data, "little") & self._mask != self._fixed:
            try:
                self._learn_layout(data)
            except EncapsulationError:
                if self._typed is None:
                    raise
                self._take(_middleware_message(self._typed, data))
                return
        self._bytes[:] = data
        seconds, nanoseconds = self._stamp.unpack_from(data, _BODY)
        self.stamp = seconds * _SECOND + nanoseconds
        for native, swapped in self._swapped:
            native[:] = swapped

    def _learn_layout(self, data: bytes) -> None:
        """Parse `data`, and look with array views at the bytes of all messages that share its layout."""
        cursor = _Cursor(data)
        cursor.stamp()
        cursor.characters()  # frame_id: its length matters, its text does not
        names = tuple(cursor.string() for _ in range(cursor.uint32()))
        spans = [cursor.doubles() for _ in range(3)]

        buffer = np.empty(_BODY + len(data), np.uint8)  # the body at a multiple of 8, so that its doubles are aligned
        views = [buffer[_BODY + start :][: 8 * count].view(cursor.order + "f8") for start, count in spans]
        if cursor.order == _NATIVE:
            self._swapped = []
        else:
            self._swapped = [(np.empty(len(view)), view) for view in views]
            views = [native for native, _ in self._swapped]
        self.position, self.velocity, self.effort = views
        self.names = self.names if names == self.names else names
        self._stamp = struct.Struct(cursor.order + "iI")
        self._bytes = buffer[_BODY:].data
        self._length, self._mask = len(data), cursor.mask()
        self._fixed = int.from_bytes(data, "little") & self._mask

    def _take(self, message: Any) -> None:
        """Take over a message that the middleware decoded."""
        names = tuple(message.name)
        self.names = self.names if names == self.names else names
        self.stamp = message.header.stamp.sec * _SECOND + message.header.stamp.nanosec
        self.position = np.array(message.position, dtype=np.float64)
        self.velocity = np.array(message.velocity, dtype=np.float64)
        self.effort = np.array(message.effort, dtype=np.float64)
        self._length = -1  # the arrays are no views any more


def decode_array(data: bytes, typed: Typed | None = None) -> Array:
    """The data (n,) of a serialised std_msgs/Float64MultiArray; `layout` is passed over."""
    try:
        cursor = _Cursor(data)
    except EncapsulationError:
        if typed is None:
            raise
        return np.array(_middleware_message(typed, data).data, dtype=np.float64)
    for _ in range(cursor.uint32()):  # dim
        cursor.characters()
        cursor.uint32()
        cursor.uint32()
    cursor.uint32()  # data_offset
    start, count = cursor.doubles()
    return np.frombuffer(data, cursor.order + "f8", count, start).astype(np.float64)


def decode_header(data: bytes, typed: Typed | None = None) -> tuple[int, str]:
    """Stamp in ns and frame_id of a serialised std_msgs/Header."""
    try:
        cursor = _Cursor(data)
    except EncapsulationError:
        if typed is None:
            raise
        header = _middleware_message(typed, data)
        return header.stamp.sec * _SECOND + header.stamp.nanosec, str(header.frame_id)
    return cursor.stamp(), cursor.string()


class JointStateEncoder:
    """Writes serialised sensor_msgs/JointState for fixed `names` and `frame_id`."""

    def __init__(self, names: Sequence[str], frame_id: str = "") -> None:
        block = _string(frame_id)
        for part in (_UINT32.pack(len(names)), *map(_string, names), b""):
            block += bytes(-len(block) % 4) + part
        self._names = block

    def encode(self, stamp: int, position: ArrayLike = (), velocity: ArrayLike = (), effort: ArrayLike = ()) -> bytes:
        """A message stamped `stamp` (ns); each array (n,), or () to leave the field empty."""
        data = _PREFIX + _STAMP.pack(*divmod(stamp, _SECOND)) + self._names
        for field in (position, velocity, effort):
            values = np.asarray(field, dtype=np.float64)
            data += _UINT32.pack(values.size)
            if values.size:
                data += bytes((_BODY - len(data)) % 8) + values.tobytes()
        return data


def encode_array(values: ArrayLike) -> bytes:
    """A serialised std_msgs/Float64MultiArray with data `values` (n,) and an empty layout."""
    array = np.asarray(values, dtype=np.float64)
    # Its doubles start at 16; three uint32 end at 12.
    return _PREFIX + _ARRAY.pack(0, 0, array.size) + (bytes(4) + array.tobytes() if array.size else b"")


def encode_header(stamp: int, frame_id: str) -> bytes:
    """A serialised std_msgs/Header; `stamp` in ns."""
    return _PREFIX + _STAMP.pack(*divmod(stamp, _SECOND)) + _string(frame_id)


def _string(text: str) -> bytes:
    characters = text.encode()
    if 0 in characters:
        raise WireError(f"{text!r} holds a NUL, which a ROS string cannot carry")
    return _UINT32.pack(len(characters) + 1) + characters + b"\x00"


def _middleware_message(typed: Typed, data: bytes) -> Any:
    try:
        return typed(data)
    except Exception as error:  # each middleware has its own kind
        raise WireError(f"neither plain CDR nor readable by the middleware: {error}") from error


class _Cursor:
    """Walks through one message, never past its end, and notes which bytes decide the layout."""

    def __init__(self, data: bytes) -> None:
        if len(data) < _BODY:
            raise WireError(f"a message of {len(data)} bytes has no encapsulation header")
        if data[:2] not in _ORDER:
            raise EncapsulationError(f"encapsulation 0x{data[:2].hex()} is not plain CDR (0x0000 or 0x0001)")
        self.order = _ORDER[data[:2]]
        self._data = data
        self._offset = _BODY
        self._uint32 = struct.Struct(self.order + "I")
        self._end = len(data) - (data[3] & 3)
        self._fixed = [(0, _BODY)]

    def stamp(self) -> int:
        """ns"""
        seconds, nanoseconds = struct.unpack_from(self.order + "iI", self._data, self._advance(8, 4))
        return int(seconds * _SECOND + nanoseconds)

    def uint32(self) -> int:
        start = self._advance(4, 4)
        self._fixed.append((start, start + 4))
        return int(self._uint32.unpack_from(self._data, start)[0])

    def string(self) -> str:
        start, length = self.characters()
        if length == 0:  # some middlewares send an empty string without its NUL
            return ""
        if self._data.find(b"\x00", start, start + length) != start + length - 1:
            raise WireError(f"the string at byte {start} does not end at its first NUL")
        self._fixed.append((start, start + length))
        return self._data[start : start + length - 1].decode(errors="replace")

    def characters(self) -> tuple[int, int]:
        """Where a string starts, and its length with the NUL; the characters do not decide the layout."""
        length = self.uint32()
        return self._advance(length, 1), length

    def doubles(self) -> tuple[int, int]:
        """Where the elements of a sequence<double> start, and how many there are."""
        count = self.uint32()
        return (self._advance(8 * count, 8) if count else self._offset), count

    def mask(self) -> int:
        """Ones where the bytes decide the layout."""
        mask = bytearray(len(self._data))
        for start, end in self._fixed:
            mask[start:end] = b"\xff" * (end - start)
        return int.from_bytes(mask, "little")

    def _advance(self, size: int, alignment: int) -> int:
        """Pass over a gap and `size` bytes; where these start."""
        start = self._offset + (_BODY - self._offset) % alignment
        if start + size > self._end:
            raise WireError(f"the message ends at byte {self._end}, in a field that ends at byte {start + size}")
        self._offset = start + size
        return start
