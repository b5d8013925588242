"""What `limit.json` holds, as a typed model."""

from typing import Literal

from pydantic import Field

from racetrack.record_part import Endless, Part, Scalar
from racetrack.run_record import Machine, Window

VOID = "Why it says nothing of the engine alone, where others used the machine; it was made again."


class OverloadedRun(Part):
    """A fresh run with always more to do; `tag` names its folder beside the limit's."""

    tag: str
    warm_up_s: float = Field(description="From the first load until it was warm and had a backlog.")
    is_warm: bool = Field(description="Whether its CPU time per pageview had become flat by then.")
    window: Window
    batches_per_s: tuple[float, ...] = Field(description="The rate of its work, batch by batch.")
    youngest_s: float = Field(description="The least age of its backlog in the window.")
    oldest_s: float = Field(description="The greatest.")
    idle_share: float = Field(
        description="The part of the window in which it may have waited for more to do."
    )
    handed_over_per_s: float = Field(description="What the generator gave its client.")
    void: str | None = Field(default=None, description=VOID)


class SteadyRun(Part):
    """A fresh run at a rate; `tag` names its folder beside the limit's."""

    tag: str
    pageviews_per_s: int
    warm_up_s: float = Field(description="Seconds at half the rate.")
    is_warm: bool = Field(description="Whether its CPU time per pageview had become flat by then.")
    window: Window
    lag_p50_ms: Endless
    lag_p99_ms: Endless
    cycle_ms: float = Field(description="The usual time between two updates.")
    handed_over_per_s: float = Field(description="What the generator gave its client.")
    broken_off: bool = Field(description="Whether no bound could hold any more, so that it ended.")
    void: str | None = Field(default=None, description=VOID)


class Capacity(Part):
    """The rate at which it works when there is always more to do, with its 95 % interval."""

    pageviews_per_s: float
    low: Endless
    high: Endless


class SustainableRate(Part):
    """What its lag's p99 stayed within a bound at: the highest rate tried that held, and the lowest
    above it that did not; null where there was none."""

    bound_ms: float
    held_pageviews_per_s: int | None
    failed_pageviews_per_s: int | None


class LimitRecord(Part):
    """The search for an engine's limit; rates in pageviews per second. Version 1 held another kind
    of search, which found two rates by their verdicts."""

    engine: str
    runtime: str
    machine: Machine
    settings: dict[str, Scalar] = Field(default_factory=dict)
    outcome: str = "unfinished"
    capacity: Capacity | None = None
    sustainable: tuple[SustainableRate, ...] = ()
    overloaded: tuple[OverloadedRun, ...] = ()
    steady: tuple[SteadyRun, ...] = ()
    minutes: float = 0.0
    schema_version: Literal[2] = 2
    kind: Literal["limit"] = "limit"
