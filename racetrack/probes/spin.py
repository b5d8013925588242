"""How fast the machine is now: a fixed piece of known work, timed."""

import hashlib
import time

BLOCK = bytes(range(256)) * 128  # 32 KiB: it fits into the fastest cache
BLOCKS_PER_TRY = 8
TRIES = 100
MIB = 1024**2


def mib_per_s() -> float:
    """MiB of SHA-256 per second on one core: the best of some tries, so that whoever has the core
    for a moment changes nothing, while a lower frequency does. It does not see who takes memory
    bandwidth."""
    best_s = min(_try_s() for _ in range(TRIES))
    return round(BLOCKS_PER_TRY * len(BLOCK) / MIB / best_s, 1)


def _try_s() -> float:
    digest = hashlib.sha256()
    began_s = time.perf_counter()
    for _ in range(BLOCKS_PER_TRY):
        digest.update(BLOCK)
    return time.perf_counter() - began_s
