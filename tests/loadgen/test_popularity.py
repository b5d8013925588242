"""Tests that draws follow Zipf's law, and that exponent 0 is as even as no exponent."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from loadgen.popularity import Popularity, zipf
from loadgen.sequence import Stream, pick

DRAWS = 200_000


def counts(popularity: Popularity) -> list[int]:
    stream, found = Stream(42, "draws"), [0] * popularity.count
    for n in range(DRAWS):
        found[popularity.pick(stream.draw(n)[0])] += 1
    return found


@pytest.mark.parametrize("exponent", [0.0, 0.8, 1.0, 1.2, 2.0])
def test_draws_follow_zipf_s_law(exponent: float) -> None:
    count = 500
    shares = [(number + 1) ** -exponent for number in range(count)]
    expected = [DRAWS * share / sum(shares) for share in shares]
    # The chi-square test needs cells of at least five, so rarer numbers share one.
    often = sum(n >= 5 for n in expected)

    def cells(of: Sequence[float]) -> list[float]:
        return [*of[:often], sum(of[often:])] if often < count else list(of)

    assert chisquare(cells(counts(zipf(count, exponent))), cells(expected)).pvalue > 0.001


@given(st.integers(0, 2**32 - 1), st.integers(1, 200))
def test_equal_popularity_is_the_even_pick(random32: int, count: int) -> None:
    assert zipf(count).pick(random32) == pick(random32, count)


@given(st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=50))
def test_the_table_holds_the_probabilities_of_the_weights(weights: list[float]) -> None:
    popularity = Popularity(weights)
    rows = [0.0] * len(weights)
    for number, threshold in enumerate(popularity.thresholds):
        rows[number] += threshold / 2**32
        rows[popularity.others[number]] += 1 - threshold / 2**32
    for share, weight in zip(rows, weights, strict=True):
        assert share / len(weights) == pytest.approx(weight / sum(weights), rel=1e-6, abs=1e-7)
