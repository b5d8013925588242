"""Random numbers by index, as a function of the seed.

The numbers of event n are computed from n, not from event n-1. So a worker can take over at any
event, and the sequence does not depend on the number of workers."""

from __future__ import annotations

import hashlib

_MASK = 0xFFFFFFFF


def mix32(x: int) -> int:
    """Hash a 32-bit number to a 32-bit number (a bijection).

    Both multipliers are below 2**31, so products fit a signed 64-bit word and PyPy keeps them in
    registers."""
    x ^= x >> 16
    x = (x * 0x21F0AAAD) & _MASK
    x ^= x >> 15
    x = (x * 0x735A2D97) & _MASK
    return x ^ (x >> 15)


def keys_for(seed: int, purpose: str, block: int) -> tuple[int, int]:
    """Return two 32-bit keys of a purpose ("pageviews/3") for one block of 2**32 events."""
    digest = hashlib.sha256(f"{seed}/{purpose}/{block}".encode()).digest()
    return int.from_bytes(digest[:4], "big"), int.from_bytes(digest[4:8], "big")


def pick(random32: int, count: int) -> int:
    """Return a number in range(count) from 32 random bits; count <= 2**31."""
    return (random32 * count) >> 32


class Stream:
    """Random numbers by index for one purpose."""

    def __init__(self, seed: int, purpose: str) -> None:
        self._seed = seed
        self._purpose = purpose
        self._block = -1
        self._keys = (0, 0)

    def keys(self, n: int) -> tuple[int, int]:
        """Return the keys of the block that contains n."""
        if n >> 32 != self._block:
            self._block = n >> 32
            self._keys = keys_for(self._seed, self._purpose, self._block)
        return self._keys

    def draw(self, n: int) -> tuple[int, int]:
        """Return two independent 32-bit numbers, always the same for the same n."""
        first, second = self.keys(n)
        return mix32((n + first) & _MASK), mix32((n + second) & _MASK)
