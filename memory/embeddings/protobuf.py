"""Write fields of protocol buffers: https://protobuf.dev/programming-guides/encoding/."""

from __future__ import annotations

import struct


def text_field(field: int, value: str) -> bytes:
    """Return a field with UTF-8 text."""
    return bytes_field(field, value.encode())


def bytes_field(field: int, value: bytes) -> bytes:
    """Return a field with bytes or an embedded message."""
    return _tag(field, 2) + _varint(len(value)) + value


def number_field(field: int, value: int) -> bytes:
    """Return a field with an integer, an enum or a boolean."""
    return _tag(field, 0) + _varint(value)


def float_field(field: int, value: float) -> bytes:
    """Return a field with a 32-bit float."""
    return _tag(field, 5) + struct.pack("<f", value)


def _tag(field: int, wire_type: int) -> bytes:
    return _varint(field << 3 | wire_type)


def _varint(value: int) -> bytes:
    """Return seven bits per byte, lowest first; negative numbers as 64-bit two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
