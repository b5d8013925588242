"""Tests of scaling: intervals of factors cover the truth as often as stated, and the least number
of replicas for a rate is named only if the runs decide it."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from racetrack.analysis.capacity import scale_of
from racetrack.report.scaling import chart, sentences, table
from racetrack.results.repeats import Piece, ScaleRecord

HELD, FAILED = "kept up", "fell behind"
Capacities = Mapping[int, Sequence[float]]


def record(
    capacities: Capacities,
    held: Mapping[int, Sequence[str]] | None = None,
    bounds: Sequence[int] = (),
) -> ScaleRecord:
    """Return a record with these capacities, and these verdicts at 50,000/s."""
    pieces = [
        Piece(
            engine="flink",
            replicas=replicas,
            repeat=repeat,
            pageviews_per_s=None,
            tag="",
            figures={"capacity_per_s": per_s},
            is_lower_bound=replicas in bounds,
        )
        for replicas, of in capacities.items()
        for repeat, per_s in enumerate(of, start=1)
    ]
    pieces += [
        Piece(
            engine="flink",
            replicas=replicas,
            repeat=repeat,
            pageviews_per_s=50_000,
            tag="",
            verdict=verdict,
        )
        for replicas, of in (held or {}).items()
        for repeat, verdict in enumerate(of, start=1)
    ]
    return ScaleRecord(
        engine="flink",
        replicas=tuple(capacities),
        partitions=8,
        rates=(50_000,) if held else (),
        repeats=3,
        seed=1,
        runtime="kubernetes",
        workload="shop",
        pieces=tuple(pieces),
    )


@pytest.mark.slow
@pytest.mark.parametrize("repeats", [2, 3])
def test_the_interval_of_a_factor_covers_the_truth_as_often_as_it_says(repeats: int) -> None:
    """The capacities scatter by 4 % between fresh runs, like those measured of the engines `pg` and
    `flink`."""
    rng, times, exponent = np.random.default_rng(34), 600, 0.77
    covered = {2: 0, 4: 0, 8: 0}
    for _ in range(times):
        drawn = {
            n: list(10_000 * n**exponent * np.exp(rng.normal(0, 0.04, repeats)))
            for n in (1, *covered)
        }
        for step in scale_of(record(drawn)).steps[1:]:
            factor, true = step.factor, step.replicas**exponent
            assert factor and factor.low and factor.high
            covered[step.replicas] += factor.low <= true <= factor.high
    for n, count in covered.items():
        assert 0.925 <= count / times <= 0.975, n


def test_most_replicas_come_first_in_the_sentence() -> None:
    capacities = {
        1: (10_000, 10_300, 9_800),
        2: (18_000, 17_600, 18_500),
        4: (29_900, 28_200, 29_000),
    }
    scale = scale_of(record(capacities))
    assert sentences(scale) == [
        "`flink`: 4 replicas hold 2.9 ± 0.2 × what one holds; 2 hold 1.8 ± 0.1 ×."
    ]
    rows = table(scale)
    assert rows[0] == ["replicas", "runs", "capacity, /s", "÷ capacity of 1", "% of ideal"]
    assert rows[3][:2] == ["4", "3"]
    assert rows[3][4] == "72"


def test_a_factor_that_the_runs_do_not_decide_is_named_as_such() -> None:
    alike = {2: (10_000, 10_300, 9_800), 4: (10_100, 10_500, 9_700)}
    (line,) = sentences(scale_of(record(alike)))
    assert line.startswith("`flink`: 4 replicas hold 1.0")
    assert line.endswith("× what 2 hold (no difference found).")
    (line,) = sentences(scale_of(record({1: (10_000,), 2: (19_000,)})))
    assert line.endswith("1.9 × what one holds (not decided: too few repeats for an interval).")
    (line,) = sentences(scale_of(record({1: (10_000, 10_100), 2: ()})))
    assert line.startswith("Not decided how `flink` scales")


def test_a_lower_bound_gives_a_bound_of_the_factor() -> None:
    capacities = {1: (10_000, 10_100), 2: (19_000, 19_100)}
    (line,) = sentences(scale_of(record(capacities, bounds=(2,))))
    assert "2 replicas hold at least 1.9" in line
    (line,) = sentences(scale_of(record(capacities, bounds=(1,))))
    assert "2 replicas hold at most 1.9" in line
    (line,) = sentences(scale_of(record(capacities, bounds=(1, 2))))
    assert line.endswith("(not decided: both are lower bounds).")


UNDECIDED = "Not decided which number of replicas is the least that holds 50,000/s:"
MORE = "more may be needed"
ALL = {1: (20_000, 20_100), 2: (40_000, 40_100), 4: (80_000, 80_100)}


@pytest.mark.parametrize(
    ("held", "says"),
    [
        (
            {1: [FAILED] * 2, 2: [FAILED] * 2, 4: [HELD] * 2},
            "4 replicas are the fewest tried that hold 50,000/s: in 2 of 2 runs, 2 in 0 of 2 runs.",
        ),
        (
            {1: [HELD] * 2, 2: ["undecided"] * 2, 4: [HELD] * 2},
            "1 replica, the fewest tried, holds 50,000/s: in 2 of 2 runs.",
        ),
        (
            {1: [FAILED] * 2, 2: [FAILED] * 2, 4: [FAILED] * 2},
            "More than 4 replicas are needed to hold 50,000/s: 4 held it in 0 of 2 runs.",
        ),
        (
            {1: [FAILED] * 2, 2: [FAILED, HELD], 4: [HELD] * 2},
            f"{UNDECIDED} held by 1 in 0 of 2 runs, 2 in 1 of 2 runs, 4 in 2 of 2 runs.",
        ),
        (
            {1: [FAILED], 2: [FAILED], 4: [HELD]},
            f"{UNDECIDED} held by 1 in 0 of 1 run, 2 in 0 of 1 run, 4 in 1 of 1 run; {MORE}.",
        ),
        (
            {1: ["generator-bound"], 2: [], 4: []},
            "Not decided which number of replicas holds 50,000/s: no run showed it.",
        ),
    ],
)
def test_the_least_number_that_holds_a_rate(held: Mapping[int, list[str]], says: str) -> None:
    assert sentences(scale_of(record(ALL, held)))[1] == says


def test_the_chart_has_intervals_the_ideal_and_the_rate_to_hold() -> None:
    drawn = chart(scale_of(record(ALL, {4: [HELD] * 2})))
    assert drawn
    measured, ideal, rate = drawn.lines
    assert list(measured.x) == [1, 2, 4]
    assert measured.half is not None and (measured.half > 0).all()
    assert ideal.y == pytest.approx([20_050, 40_100, 80_200], rel=1e-3)
    assert list(rate.y) == [50_000] * 3
