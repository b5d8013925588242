"""Counters of the workers, in memory shared with the generator's main process.

Each counter is a 64-bit integer that only one process writes. The counters of a killed worker
remain, and its successor continues from them."""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from typing import Any

# Numbers of the words (64-bit counters) in a partition's block, which only the partition's worker
# writes. From NEXT_DERIVED on there is one word for each kind of derived events, with room for five
# kinds.
POSITION, HANDED, REFUSED, NEXT_DERIVED = 0, 1, 2, 3
_PARTITION_WORDS = 8
# Numbers of the words in a worker's block. From _HISTOGRAM on there is the histogram of lateness.
QUEUED, CPU_NS = 0, 1
_HISTOGRAM = 8
# Lateness is counted in classes of microseconds: exact below 32, then 32 classes per octave (3 %
# wide), up to 2**36 us (19 h).
_SUB_BITS = 5
_SUB = 1 << _SUB_BITS
CLASSES = _SUB * (36 - _SUB_BITS + 1)
_WORKER_WORDS = _HISTOGRAM + CLASSES


def class_of(lateness_us: int) -> int:
    """Return the class of a lateness in microseconds; a negative one counts as 0."""
    if lateness_us < _SUB:
        return lateness_us if lateness_us > 0 else 0
    shift = lateness_us.bit_length() - _SUB_BITS - 1
    return min((shift << _SUB_BITS) + (lateness_us >> shift), CLASSES - 1)


def class_top_us(number: int) -> int:
    """Return the largest lateness of a class, microseconds."""
    if number < _SUB:
        return number
    shift = (number >> _SUB_BITS) - 1
    return (((number & (_SUB - 1)) + _SUB + 1) << shift) - 1


def quantile_us(histogram: Sequence[int], q: float) -> int:
    """Return the q-quantile of a histogram of lateness, microseconds; 0 if the histogram is empty.

    The result is the upper end of its class, so it is never too low.
    """
    wanted = q * sum(histogram)
    seen = 0
    for number, count in enumerate(histogram):
        seen += count
        if count and seen >= wanted:
            return class_top_us(number)
    return 0


class Counters:
    """Shared counters. The main process creates `fd` with `create_fd`; workers inherit it."""

    def __init__(self, fd: int, partitions: int, workers: int) -> None:
        # cffi is part of PyPy. An access takes 7 ns; with ctypes it takes 300 ns.
        from cffi import FFI  # type: ignore[import-untyped]

        self.partitions = partitions
        self._workers_at = partitions * _PARTITION_WORDS
        self._map = mmap.mmap(fd, words(partitions, workers) * 8)
        ffi = FFI()
        self._buffer = ffi.from_buffer(self._map)
        self.word: Any = ffi.cast("int64_t *", self._buffer)

    def partition(self, partition: int) -> int:
        """Return the index of a partition's block in `word`."""
        return partition * _PARTITION_WORDS

    def worker(self, number: int) -> int:
        """Return the index of a worker's block in `word`."""
        return self._workers_at + number * _WORKER_WORDS

    def of_worker(self, number: int, which: int) -> int:
        """Return a worker's counter; `which` is QUEUED or CPU_NS."""
        return int(self.word[self.worker(number) + which])

    def column(self, which: int) -> list[int]:
        """Return one counter of every partition: POSITION, HANDED, REFUSED, or NEXT_DERIVED +
        kind."""
        return [self.word[p * _PARTITION_WORDS + which] for p in range(self.partitions)]

    def late(self, number: int, lateness_us: int, count: int) -> None:
        """Add `count` events with this lateness to a worker's histogram."""
        self.word[self.worker(number) + _HISTOGRAM + class_of(lateness_us)] += count

    def lateness(self, workers: int) -> list[int]:
        """Return the histogram of lateness by class, summed over all workers."""
        total = [0] * CLASSES
        for worker in range(workers):
            base = self.worker(worker) + _HISTOGRAM
            for number in range(CLASSES):
                total[number] += self.word[base + number]
        return total


def words(partitions: int, workers: int) -> int:
    """Return the size of the shared memory in 64-bit words."""
    return partitions * _PARTITION_WORDS + workers * _WORKER_WORDS


def create_fd(partitions: int, workers: int) -> int:
    """Create anonymous shared memory, all zero, that workers inherit; freed when the last process
    closes it."""
    fd = os.memfd_create("loadgen-counters", 0)
    os.ftruncate(fd, words(partitions, workers) * 8)
    return fd
