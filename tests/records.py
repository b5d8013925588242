"""A complete `run.json` for tests that use only a part."""

from collections.abc import Mapping
from typing import Any

from racetrack.results.run import RunRecord

_SLOPE = {"pct": 0.0, "low_pct": -0.1, "high_pct": 0.1}
_SHARE = {"p50_ms": 1.0, "slope": None}

COST = {"cpu_mean_pct": 10.0, "cpu_s": 1.0, "cpu_user_s": 0.5, "cpu_system_s": 0.5}
LAG: dict[str, Any] = {
    "slope": _SLOPE,
    **{f"lag_{of}_ms": 1.0 for of in ("p50", "p90", "p99", "max")},
    "lag_distribution": [{"share": 0.5, "lag_ms": 1.0}, {"share": 1.0, "lag_ms": 1.0}],
    **{f"processing_lag_{of}_ms": 1.0 for of in ("p50", "p99", "max")},
    **dict.fromkeys(("generator", "broker", "engine"), _SHARE),
}
NOISE_FIGURES: dict[str, Any] = {
    "seconds": 10.0,
    "foreign_cpu_pct": 0.8,
    "steal_pct": 0.2,
    "busy_pct": 60.0,
    "machine_busy_pct": 30.0,
    "harness_cpu_pct": 1.5,
    "load_1_min": 0.7,
    "mhz": None,
    "waited_for_cpu_pct": 3.0,
    "waited_for_memory_pct": 0.0,
    "waited_for_io_pct": 0.0,
}


GATE: dict[str, Any] = {
    "noise_gate": True,
    "foreign_cpu_max_pct": 5.0,
    "steal_max_pct": 1.0,
    "slowdown_max_pct": 30.0,
}

VIEW: dict[str, Any] = {
    "name": "item_summary.orders",
    "source": "purchases",
    "tracer_events_per_s": 12.0,
    "updates": 20,
    "kind": "fell behind",
    "reason": "Fell behind: its lag grows.",
    "lag_p50_ms": 430.2,
    "lag_p90_ms": 900.0,
    "lag_p99_ms": 1_925.1,
    "lag_max_ms": None,
}
THROUGHPUT = ("offered_per_s", "handed_over_per_s", "published_per_s", "processed_per_s")
RUN: dict[str, Any] = {
    "schema_version": 6,
    "run_id": "6f1c2a34-0000-4000-8000-000000000001",
    "tag": "2026.03.22.05.04.28_UTC_steady_5000",
    "engine": "steady",
    "runtime": "native",
    "outcome": "ok",
    "arguments": {"events_per_s": 5000, "wait_s": 20, "samples": 10, "delay_s": 1},
    "measured": {
        "window": {"start_ms": 1_795_000_000_000, "end_ms": 1_795_000_010_000},
        "rate_set_ms": 1_794_999_980_000,
        "cpu_s": {},
        "handed_over": [10, 20],
        "refused": [0, 0],
        "end_offsets": [10, 20],
    },
    "results": {
        "offered_events_per_s": 5000.0,
        "achieved_events_per_s": 5003.1,
        "published_events": 30,
        "processed_events": 30,
        "verdict": {
            "kind": "kept up",
            "reason": "Kept up: lag is steady",
            "warnings": [],
            "threshold_pct": 1.0,
            "from_ms": 1_795_000_000_000,
            "until_ms": 1_795_000_010_000,
            "window_s": 10.0,
            "updates": 10,
            "requested_per_s": 5000,
            "throughput": dict.fromkeys(THROUGHPUT, 5000),
            "measured": LAG,
            "shortest_window_s": None,
        },
        "dt_ms": {"mean": 1.0, "p50": 1.0, "max": 1.0, "updates": 10},
        "processes": {},
    },
}


def run_json(changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the content of a good run's `run.json`, with `changes`: mappings merge, other values
    replace."""
    return merged(RUN, changes or {})


def record(changes: Mapping[str, Any] | None = None) -> RunRecord:
    """Return the same content as a record, as the harness reads it from `run.json`."""
    return RunRecord.model_validate(run_json(changes))


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of `base` with `changes` merged into mappings at all levels."""
    made = dict(base)
    for key, value in changes.items():
        below = made.get(key)
        both = isinstance(value, Mapping) and isinstance(below, Mapping)
        made[key] = merged(below or {}, value) if both else value
    return made


def verified(**views: dict[str, Any]) -> dict[str, Any]:
    """Return the record of a verification of these views."""
    return {
        "drained_after_s": 1.25,
        "drain_within_s": 60.0,
        "source_read_s": 0.5,
        "took_s": 2.0,
        "harness_peak_rss_gib": 0.5,
        "end_offsets": [10, 20],
        "source_rows": {"pageviews": 30, "purchases": 4},
        "relative_error": 1e-9,
        "views": views,
    }
