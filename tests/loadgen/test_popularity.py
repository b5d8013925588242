"""Tests that draws follow Zipf's law."""

from collections.abc import Sequence

import pytest
from scipy.stats import chisquare

from loadgen.popularity import Popularity, zipf
from loadgen.sequence import Stream

DRAWS = 200_000


def counts(popularity: Popularity) -> list[int]:
    stream, found = Stream(42, "draws"), [0] * popularity.count
    for n in range(DRAWS):
        found[popularity.pick(stream.draw(n)[0])] += 1
    return found


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0])
def test_draws_follow_zipf_s_law(exponent: float) -> None:
    count = 500
    shares = [(number + 1) ** -exponent for number in range(count)]
    expected = [DRAWS * share / sum(shares) for share in shares]
    # The chi-square test needs cells of at least five, so rarer numbers share one.
    often = sum(n >= 5 for n in expected)

    def cells(of: Sequence[float]) -> list[float]:
        return [*of[:often], sum(of[often:])] if often < count else list(of)

    assert chisquare(cells(counts(zipf(count, exponent))), cells(expected)).pvalue > 0.001
