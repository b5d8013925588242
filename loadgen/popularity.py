"""Draws users, items and ads of different popularity, in constant time per draw, by an alias table
(Walker 1977)."""

from __future__ import annotations

from collections.abc import Sequence

_WHOLE = 2**32
_MASK = 0xFFFFFFFF


class Popularity:
    """Numbers in range(count), drawn with probabilities proportional to `weights`.

    A draw first picks a number with equal probabilities. If 32 further random bits are below the
    number's entry in `thresholds`, the result is this number, otherwise its entry in `others`. With
    equal weights, the first pick is always the result.
    """

    def __init__(self, weights: Sequence[float]) -> None:
        self.count = len(weights)
        self.weights = weights
        self.thresholds, self.others = _alias_table(weights)

    def pick(self, random32: int) -> int:
        """Return a number from 32 random bits. The remainder of the first pick provides the further
        random bits."""
        whole = random32 * self.count
        return self.settle(whole >> 32, whole & _MASK)

    def settle(self, number: int, random32: int) -> int:
        """Return the result for a first pick `number` and 32 further random bits."""
        return number if random32 < self.thresholds[number] else self.others[number]


def zipf(count: int, exponent: float = 0.0) -> Popularity:
    """Return numbers in range(count) with popularities by Zipf's law.

    The popularity of number n is proportional to (n + 1) ** -exponent. With the exponent 0 all
    numbers are equally popular.
    """
    return Popularity([(number + 1) ** -exponent for number in range(count)])


def _alias_table(weights: Sequence[float]) -> tuple[list[int], list[int]]:
    """Return (thresholds of 32 bits, others).

    The algorithm is from Vose, "A linear algorithm for generating random numbers with a given
    distribution", IEEE Transactions on Software Engineering 17, 1991.
    """
    count, total = len(weights), sum(weights)
    scaled = [weight * count / total for weight in weights]
    # A number that is never replaced has itself as its entry in `others`: its threshold would have
    # to be 2**32, which does not fit 32 bits.
    thresholds, others = [_MASK] * count, list(range(count))
    small = [number for number in range(count) if scaled[number] < 1]
    large = [number for number in range(count) if scaled[number] >= 1]
    while small and large:
        less, more = small.pop(), large[-1]
        thresholds[less], others[less] = int(scaled[less] * _WHOLE), more
        scaled[more] -= 1 - scaled[less]
        if scaled[more] < 1:
            small.append(large.pop())
    return thresholds, others
