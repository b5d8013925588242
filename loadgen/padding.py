"""Padding of messages: a last field of filler text makes all of them equally long."""

from __future__ import annotations

from typing import Any

from loadgen.sequence import mix32

_START, _END = b', "padding": "', b'"}'
_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"


def filler(length: int) -> bytes:
    """Return random-looking text for padding. It is the same for every message and every seed."""
    return bytes(_LETTERS[mix32(n) >> 26] for n in range(length))


def padded(message: bytes, size: int) -> bytes:
    """Return a JSON object, padded to `size` bytes (0: not padded). `Padding` must produce the same
    bytes."""
    if not size:
        return message
    start = message[:-1] + _START
    return start + filler(size - len(start) - len(_END)) + _END


class Padding:
    """Pads messages in C memory to `size` bytes."""

    def __init__(self, ffi: Any, size: int) -> None:
        self._ffi, self._size = ffi, size
        self._filler = ffi.new("char[]", _START + filler(size))
        self._end = ffi.new("char[]", _END)

    def pad(self, start: Any, length: int) -> int:
        """Replace the closing brace of a message by the padding field; return the new length."""
        memmove, end = self._ffi.memmove, self._size - len(_END)
        memmove(start + (length - 1), self._filler, end - (length - 1))
        memmove(start + end, self._end, len(_END))
        return self._size
