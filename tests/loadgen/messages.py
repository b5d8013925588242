"""Messages that a renderer made, read through librdkafka's structs without librdkafka."""

from typing import Any

from cffi import FFI  # type: ignore[import-untyped]

from racetrack.config import REPO


def message_ffi() -> FFI:
    """Return an object of cffi that knows librdkafka's structs."""
    ffi = FFI()
    ffi.cdef((REPO / "loadgen" / "rdkafka_abi.h").read_text())
    return ffi


def rendered(renderer: Any) -> list[tuple[bytes | None, bytes]]:
    """Return key and value of every message in the batch; the key is None without one."""
    ffi = FFI()
    messages = [renderer.messages[n] for n in range(renderer.count)]
    return [
        (
            None if m.key == ffi.NULL else ffi.buffer(m.key, m.key_len)[:],
            ffi.buffer(m.payload, m.len)[:],
        )
        for m in messages
    ]
