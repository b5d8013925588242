"""Tests of the sentences and the table of a comparison."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from racetrack.analysis.comparison import Side, sides_of
from racetrack.analysis.intervals import summary
from racetrack.report.comparison import describe_conditions, grid, sentences, table
from racetrack.report.export import flat_pieces
from racetrack.results.repeats import ComparisonRecord, Piece, PlannedRun

Values = Mapping[tuple[str, int | None], Sequence[float]]
DH: Values = {
    ("cpu_s_per_million", 12_000): (81, 80, 82),
    ("lag_p99_ms", 12_000): (1_272, 1_270, 1_280),
    ("processing_lag_p50_ms", 12_000): (200, 210, 190),
    ("capacity_per_s", None): (456_000, 450_000, 460_000),
}
PG: Values = {
    ("cpu_s_per_million", 12_000): (50, 49, 51),
    ("lag_p99_ms", 12_000): (172, 171, 173),
    ("processing_lag_p50_ms", 12_000): (90, 91, 92),
    ("capacity_per_s", None): (120_000, 121_000, 119_000),
}


def side(label: str, values: Values, **more: frozenset[int] | frozenset[str]) -> Side:
    figures = {key: summary(list(of)) for key, of in values.items()}
    return Side(label, figures, **more)  # type: ignore[arg-type]


def test_each_question_has_a_sentence() -> None:
    assert sentences([side("dh", DH), side("pg", PG)]) == [
        "At 12,000/s `pg` uses 0.62 ± 0.03 × the CPU of `dh`.",
        ("`pg` is the freshest at 12,000/s: lag p99 172 ms, 0.135 ± 0.002 × `dh`; `dh` 1,270 ms."),
        "`dh` gets furthest: capacity 455,000/s, 3.79 ± 0.08 × `pg`; `pg` 120,000/s.",
    ]


def test_an_engine_and_itself_have_no_difference() -> None:
    lines = sentences([side("A", DH), side("B", DH)])
    assert lines[0] == "No difference found in CPU at 12,000/s: `B` 1.00 (0.97 to 1.03) × `A`."
    assert [line.split(":")[0] for line in lines[1:]] == [
        "No difference found in lag p99 at 12,000/s",
        "No difference found in capacity",
    ]


def test_a_capacity_may_be_a_lower_bound() -> None:
    bounded = side("dh", DH, lower_bounds=frozenset({"capacity_per_s"}))
    sentence = sentences([bounded, side("pg", PG)])[-1]
    assert sentence.startswith("`dh` gets furthest: capacity at least 455,000/s, at least 3.79 ")
    rows = table([bounded, side("pg", PG)])
    assert rows[1][:3] == ["capacity", "/s", "≥ 455,000 ± 7,100"]


def test_a_lower_bound_never_loses_for_certain() -> None:
    bounded = side("pg", PG, lower_bounds=frozenset({"capacity_per_s"}))
    undecided = "Capacity is not decided, since that of `pg` is only a lower bound: "
    assert sentences([side("dh", DH), bounded])[-1].startswith(undecided)
    third: Values = {**PG, ("capacity_per_s", None): (90_000, 91_000, 89_000)}
    sentence = sentences([side("dh", DH), bounded, side("flink", third)])[-1]
    assert sentence.startswith("`dh` gets furthest (not decided for `pg`, a lower bound): ")
    assert "5.1 ± 0.1 × `flink`; `pg` at least 120,000/s" in sentence


def test_who_did_not_keep_up_is_named_and_not_compared() -> None:
    behind = side("pg", PG, not_sustained=frozenset({12_000}))
    lines = sentences([side("dh", DH), behind])
    assert lines[1:] == [
        "`pg` did not keep up with 12,000/s.",
        "There is no rate with which all of them kept up.",
    ]
    assert lines[0].startswith("`dh` gets furthest")
    shown = grid(table([side("dh", DH), behind]))
    assert "fell behind" in shown and "not compared" in shown


def test_a_difference_that_is_not_significant_among_all_questions_needs_more_repeats() -> None:
    lag = ("lag_p99_ms", 12_000)
    fresher: Values = {**DH, lag: (1_000, 1_300, 1_250)}
    other: Values = {**DH, lag: (1_500, 1_600, 2_000)}
    lines = sentences([side("dh", fresher), side("pg", other)])
    assert lines[1].startswith("Too few repeats to be sure of lag p99 at 12,000/s: `pg` 1.43 (1.0")


def test_processing_lag_is_shown_and_not_ranked() -> None:
    rows = {row[0]: row for row in table([side("dh", DH), side("pg", PG)])}
    assert rows["processing lag p50 at 12,000/s"][-1] == "not compared"
    assert rows["lag p99 at 12,000/s"][-1].startswith("0.14 (0.13 to 0.14)")


def test_pieces_become_sides_records_and_conditions() -> None:
    def pieces(engine: str, repeat: int) -> list[Piece]:
        given: dict[str, Any] = {"engine": engine, "repeat": repeat, "tag": f"{engine}{repeat}"}
        at_rates = [
            Piece(
                **given,
                pageviews_per_s=rate,
                verdict="kept up",
                figures={
                    "processed_pageviews_per_s": rate,
                    "cpu_mean_pct": 10 + rate / 100,
                    "lag_p99_ms": 300.0 + repeat,
                    "pss_max_gib": 1.0 + rate / 10_000,
                    "tmpfs_max_gib": 0.5,
                },
            )
            for rate in (1_000, 5_000)
        ]
        bound: dict[str, Any] = {}
        if engine == "dh":
            bound = {"is_lower_bound": True, "remark": "it ended"}
        capacity: dict[str, float | None] = {"capacity_per_s": 50_000.0 + repeat}
        return [*at_rates, Piece(**given, pageviews_per_s=None, figures=capacity, **bound)]

    failed = Piece(engine="pg", repeat=3, pageviews_per_s=1_000, tag="", outcome="it broke")
    record = ComparisonRecord(
        engines=("dh", "pg"),
        rates=(1_000, 5_000),
        repeats=2,
        seed=7,
        reads_per_s=2,
        heap_rule="Heaps are a third",
        order=tuple(PlannedRun(engine=name, repeat=1) for name in ("dh", "pg")),
        pieces=(*(one for name in ("dh", "pg") for n in (1, 2) for one in pieces(name, n)), failed),
    )
    dh, pg = sides_of(record)
    assert dh.figures["base_cpu_pct", None].values == pytest.approx((10.0, 10.0))
    assert dh.figures["memory_gib", None].values == (2.0, 2.0)
    assert dh.lower_bounds == {"capacity_per_s"}
    assert not pg.lower_bounds
    text = "\n".join(describe_conditions(record))
    for part in ("at 1,000 and 5,000/s", "seed 7", "2 times a second", "Heaps are a third."):
        assert part in text
    assert "`dh` gets further than its capacity says: it ended" in text
    assert "Left out: `pg`, repeat 3, 1,000/s: it broke" in text
    flat = flat_pieces(record)
    assert len(flat) == 13
    assert flat[2]["requested_pageviews_per_s"] is None and flat[2]["capacity_per_s"] == 50_001
