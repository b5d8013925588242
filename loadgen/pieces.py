"""Message fragments prepared in C memory, which a workload's renderer copies eight bytes at a time:
PyPy compiles that to plain loads and stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Pieces:
    """Text fragments, padded to a fixed stride, and their lengths. The renderer copies the whole
    stride; the next fragment overwrites the padding."""

    def __init__(self, ffi: Any, pieces: Sequence[bytes], width_words: int) -> None:
        width = width_words * 8
        if max(map(len, pieces)) > width:
            raise ValueError(f"a piece is longer than its {width} bytes")
        self.text = ffi.new("char[]", b"".join(piece.ljust(width, b"\0") for piece in pieces))
        self.words = ffi.cast("int64_t *", self.text)
        self.lengths = ffi.new("uint8_t[]", list(map(len, pieces)))
