"""Tests of the lines on how well several capacity searches of one engine agree."""

from typing import Any

import pytest

from racetrack import config as settings
from racetrack import plugins
from racetrack.report.collect import PLACE_ONLY
from racetrack.report.searches import describe_agreement
from racetrack.results.search import LimitRecord, LimitRun


def search(
    per_s: float,
    sustained_per_s: int | None = 80,
    void: str | None = None,
    core: tuple[float, float] | None = None,
    spent_s: float | None = None,
    **changed: Any,
) -> LimitRecord:
    """Return the record of a search that found this capacity, and this rate as sustainable within a
    lag of 2 s. `core` has the core's mean and highest speed, `spent_s` the generator's CPU time per
    million pageviews."""
    overloaded = {
        "window": {"start_ms": 0, "end_ms": 120_000},
        "counted_before": 9,
        "batches_per_s": [per_s],
        "backlog_min_s": 9,
        "backlog_max_s": 21,
        "idle_share": 0,
        "handed_over_per_s": per_s,
        "void": void,
        "cpu_s_per_million": {"loadgen": spent_s, "steady": 9.0} if spent_s else {},
        "core": core and {"mib_per_s": core[0], "fastest_mib_per_s": core[1]},
    }
    return LimitRecord.model_validate(
        {
            "engine": "steady",
            "runtime": "native",
            "machine": {"cpu_model": "A", "cores": 2, "memory_gib": 8},
            "settings": {"steady_heap": "4g", "stack_name": "here"},
            "arguments": {
                "start_per_s": 10,
                "warm_up_s": 120,
                "within_s": 900,
                "bounds_ms": [2_000],
            },
            "outcome": "ok",
            "capacity": {"per_s": per_s, "low": per_s, "high": per_s},
            "sustainable": [
                {"bound_ms": 2_000, "sustained_per_s": sustained_per_s, "failed_per_s": None}
            ],
            "runs": [{"tag": "gone", "saturation": [overloaded]}],
            **changed,
        }
    )


def test_searches_are_summarized_by_range_midpoint_and_mean() -> None:
    """Student's t with two degrees of freedom is 4.30, so the interval of the mean is ± 4.30 · 5 /
    √3."""
    found = [search(100, 80), search(95, 90), search(105, 80)]
    assert describe_agreement(found) == [
        (
            "steady: 3 searches: capacity 95 to 105, half-range 5.0 % of midpoint; mean 100 ± 12"
            " (95 %) pageviews/s"
        ),
        "steady: lag p99 within 2 s at 80 to 90, half-range 5.9 % of midpoint",
    ]


def test_how_fast_the_machine_was_for_each_stands_beside_them() -> None:
    found = [search(80, core=(80, 100), spent_s=1.5), search(60, core=(60, 120), spent_s=1.25)]
    assert describe_agreement(found)[1] == (
        "steady: speed of the machine: cores at 50 to 67 % of the fastest second of all,"
        " generator 1.25 to 1.50 CPU-s per million"
    )
    assert not any(
        "speed of the machine" in line for line in describe_agreement([*found, search(100)])
    )


@pytest.mark.parametrize(
    "unlike",
    [
        search(200, void="Void: others."),
        search(200, capacity=None),
        search(200, runtime="compose"),
        search(200, machine={"cpu_model": "A", "cores": 4, "memory_gib": 8}),
        search(200, runs=[*search(200).runs, LimitRun(tag="failed")]),
    ],
)
def test_what_is_no_repeat_of_it_does_not_count(unlike: LimitRecord) -> None:
    (capacity, _) = describe_agreement([search(100), unlike, search(100)])
    assert capacity.startswith("steady: 2 searches: capacity 100 to 100, half-range 0.0 %")


def test_searches_with_other_settings_stand_apart_and_are_named() -> None:
    """Settings that only name places, such as the stack's name, do not set searches apart."""

    def at(heap: str, per_s: float) -> LimitRecord:
        return search(per_s, settings={"steady_heap": heap, "stack_name": "there"})

    lines = describe_agreement([search(100), at("8g", 200), at("4g", 100), at("8g", 200)])
    assert [line.split(":")[0] for line in lines[::2]] == [
        "steady (STEADY_HEAP=4g)",
        "steady (STEADY_HEAP=8g)",
    ]


def test_settings_that_only_other_engines_heed_set_no_search_apart() -> None:
    engine, other = [name for name in plugins.engine_names() if settings.of_engine(name)][:2]
    own, of_other = (
        next(name for name in settings.of_engine(name) if not name.endswith(PLACE_ONLY))
        for name in (engine, other)
    )

    def with_set(name: str) -> list[str]:
        of = (search(100, engine=engine, settings=set_to) for set_to in ({}, {name: "8g"}))
        return describe_agreement(of)

    assert with_set(of_other)[0].startswith(f"{engine}: 2 searches: ")
    assert with_set(own) == []


def test_a_bound_within_which_not_every_search_found_a_rate_has_no_range() -> None:
    found = [search(100, 80), search(100, None), search(100, 70)]
    assert (
        describe_agreement(found)[1] == "steady: lag p99 within 2 s at any rate in 2 of 3 searches"
    )
    assert len(describe_agreement([search(100, None), search(100, None)])) == 1
