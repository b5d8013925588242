"""What `limit.json` holds, as a typed model."""

from typing import Literal

from pydantic import Field

from racetrack.record_part import Part, Scalar
from racetrack.results_record import VerdictKind
from racetrack.run_record import Machine


class LiveLook(Part):
    """A rate looked at within the climb."""

    pageviews_per_s: int
    verdict: VerdictKind
    lag_slope_pct: tuple[float, float, float] | None = Field(
        description="Lower end, slope, upper end."
    )


class FreshRun(Part):
    """A run of its own at a rate; `tag` names its folder beside the limit's."""

    pageviews_per_s: int
    tag: str
    verdict: VerdictKind


class LimitRecord(Part):
    """The search for an engine's limit; rates in pageviews per second."""

    engine: str
    runtime: str
    machine: Machine
    settings: dict[str, Scalar] = Field(default_factory=dict)
    tolerance_pct: float
    warm_up_s: float = 0.0
    outcome: str = "unfinished"
    keeps_up_with_pageviews_per_s: int | None = None
    falls_behind_at_pageviews_per_s: int | None = None
    climb: tuple[LiveLook, ...] = ()
    confirm: tuple[FreshRun, ...] = ()
    minutes: float = 0.0
    schema_version: Literal[1] = 1
    kind: Literal["limit"] = "limit"
