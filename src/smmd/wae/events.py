"""TensorBoard's event files, written without TensorBoard: curves and pictures.

A file is a sequence of records, each a length, the length's checksum, a protocol-buffer message and
its checksum; a record cut short by a killed process is ignored by readers.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Iterable
from pathlib import Path


class EventFile:
    """A new event file in ``folder``."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{time.time():.6f}.{socket.gethostname()}.{os.getpid()}"
        self.path = folder / name
        self._write(_event(0, _bytes(3, b"brain.Event:2")))

    def scalars(self, step: int, values: dict[str, float]) -> None:
        """A point of each named curve."""
        parts = (
            _bytes(1, _bytes(1, tag.encode()) + _tag(2, 5) + struct.pack("<f", value))
            for tag, value in values.items()
        )
        self._write(_event(step, _bytes(5, b"".join(parts))))

    def image(self, step: int, tag: str, png: bytes, shape: tuple[int, int, int]) -> None:
        """A PNG of (height, width, channels)."""
        height, width, channels = shape
        picture = _int(1, height) + _int(2, width) + _int(3, channels) + _bytes(4, png)
        value = _bytes(1, tag.encode()) + _bytes(4, picture)
        self._write(_event(step, _bytes(5, _bytes(1, value))))

    def _write(self, data: bytes) -> None:
        length = struct.pack("<Q", len(data))
        record = b"".join((length, _masked(length), data, _masked(data)))
        with open(self.path, "ab") as file:
            file.write(record)


def read(path: Path) -> Iterable[bytes]:
    """The messages of a file, up to the first that is not whole."""
    data, at = path.read_bytes(), 0
    while at + 12 <= len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        body = data[at + 12 : at + 12 + length]
        checks = data[at + 8 : at + 12], data[at + 12 + length : at + 16 + length]
        if checks != (_masked(data[at : at + 8]), _masked(body)):
            return
        yield body
        at += 16 + length


def _event(step: int, rest: bytes) -> bytes:
    return _tag(1, 1) + struct.pack("<d", time.time()) + _int(2, step) + rest


# Protocol buffers: a field is its number and wire type, then a varint, eight, n or four bytes.
def _tag(field: int, wire: int) -> bytes:
    return _varint(field << 3 | wire)


def _int(field: int, value: int) -> bytes:
    return _tag(field, 0) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _tag(field, 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)  # CRC-32C, Castagnoli
        table.append(byte)
    return table


_CRC = _table()


def _masked(data: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
