"""Results of two engines that were made up, for tests of the pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from racetrack.results.published import EngineResult
from tests.report.folders import SERVED

SHARES = (0.1, 0.25, 0.5, 0.8, 0.95)
VIEWS = {"of_workload": 2, "wrong": [], "absent": []}
VERIFIED = {**VIEWS, "runs": 1, "right": ["users", "items"]}
UNVERIFIED = {**VIEWS, "runs": 0, "right": []}
MACHINE = {"cpu_model": "M", "cores": 2, "memory_gib": 23.54, "kernel": "6"}


@dataclass(frozen=True)
class Engine:
    """Made-up figures of an engine, with repeats that differ by 1 %."""

    name: str
    capacity_per_s: float
    lag_ms: float
    cost: float
    at_least: Sequence[str] = ()
    repeats: int = 3

    def windows(self) -> list[dict[str, Any]]:
        found = []
        for repeat in range(1, self.repeats + 1):
            factor = 1 + 0.01 * (repeat - 2)
            capacity = self.capacity_per_s * factor
            whole = {"capacity_per_s": capacity, "memory_full_after_min": 30.0}
            common = {"experiment": "full", "repeat": repeat, "tag": f"{self.name}_{repeat}"}
            found.append({**common, "figures": whole, "at_least": self.at_least})
            for share in SHARES:
                figures = {
                    "achieved_events_per_s": share * capacity,
                    "view_lag_p99_ms": self.lag_ms * factor / (1 - share),
                    "cpu_s_per_million": self.cost * factor,
                }
                load = {"per_s": round(share * capacity), "share": share, "verdict": "kept up"}
                found.append({**common, **load, "figures": figures})
        return found


STEADY, SWIFT = Engine("steady", 9_000, 300, 80), Engine("swift", 3_000, 90, 40)
TITLES = {"steady": "Steady Stream", "swift": "Swift <b>&", "slow": "Slow"}


def result(of: Engine, **changes: Any) -> EngineResult:
    record = {
        "workload": "shop",
        "engine": of.name,
        "title": TITLES[of.name],
        "version": "1.0",
        "runtime": "native",
        "machine": MACHINE,
        "measured_from": "2026-11-28",
        "measured_until": "2026-11-28",
        "commands": [f"./race compare {of.name}"],
        "versions": {"racetrack": "1"},
        "settings": {},
        "classes": SERVED.model_dump(),
        "caveats": [],
        "windows": of.windows(),
        "views": VERIFIED if of.name == "steady" else UNVERIFIED,
        "noise": {"foreign_cpu_max_pct": 1.0, "steal_max_pct": 0.1},
        "raw": {"folders": [of.name], "files": 1, "sha256": "0" * 64},
    }
    return EngineResult.model_validate({**record, **changes})
