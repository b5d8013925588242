"""What `limit.json` holds, as a typed model."""

from typing import Any, Literal

from pydantic import Field

from racetrack.record_part import Endless, Part, Scalar
from racetrack.results_record import CoreSpeed
from racetrack.run_record import Machine, Window

PAGEVIEWS = "pageviews"  # the events of the main topic, whatever the workload

VOID = "Why it says nothing of the engine alone, where others used the machine; it was made again."

# A bound is no less than so many update cycles.
CYCLES = 2

COUNTED_BEFORE = "How many the engine had counted by then; some engines slow down with them."


def widened_ms(bound_ms: float, cycle_ms: float) -> float:
    """The bound for an engine that tells of an update once in a cycle."""
    return max(bound_ms, CYCLES * cycle_ms)


CORE = "How fast a core was meanwhile; null where nobody looked."


class Moment(Part):
    """Some seconds of a time with always more to do: what it worked, and what may have moved it."""

    from_ms: float
    until_ms: float
    per_s: float
    core_mib_per_s: float | None = Field(
        description="How fast the cores were: MiB of BLAKE2b that one does in a second of CPU time,"
        " the mean over all cores; null where nobody looked."
    )
    paused_share: float | None = Field(
        description="The part of it in which a JVM of the engine stood still to collect garbage;"
        " null where none logs that."
    )


class Overloaded(Part):
    """A time with always more to do."""

    window: Window
    counted_before: int = Field(description=COUNTED_BEFORE)
    batches_per_s: tuple[float, ...] = Field(description="The rate of its work, batch by batch.")
    youngest_s: float = Field(description="The least age of its backlog in the window.")
    oldest_s: float = Field(description="The greatest.")
    idle_share: float = Field(
        description="The part of the window in which it may have waited for more to do."
    )
    moments: tuple[Moment, ...] = Field(
        default=(), description="The same time in short; not kept before 2026-11-25."
    )
    view: str | None = Field(
        default=None, description="The followed view that worked least; null: the count did."
    )
    waited: dict[str, float] = Field(
        default_factory=dict,
        description="Of what comes by CDC: for what the backlog waited, by stage; shares of it.",
    )
    handed_over_per_s: float = Field(description="What the generator gave its client.")
    cpu_s_per_million: dict[str, float] = Field(
        default_factory=dict,
        description="CPU seconds of each service for a million that the engine worked meanwhile;"
        " not kept before 2026-11-24.",
    )
    core: CoreSpeed | None = Field(default=None, description=CORE)
    void: str | None = Field(default=None, description=VOID)


class AtRate(Part):
    """A time at a rate."""

    per_s: int
    bound_ms: float = Field(
        description="The bound that it was tried for, as applied: two update cycles at least."
    )
    drained: bool = Field(
        default=True,
        description="Whether it was begun without a backlog. If not, it does not say much.",
    )
    window: Window
    counted_before: int = Field(description=COUNTED_BEFORE)
    lag_p50_ms: Endless
    lag_p99_ms: Endless
    handed_over_per_s: float = Field(description="What the generator gave its client.")
    broken_off: bool = Field(
        description="Whether the bound could not hold any more, so that it ended."
    )
    core: CoreSpeed | None = Field(default=None, description=CORE)
    void: str | None = Field(default=None, description=VOID)


class LimitRun(Part):
    """A fresh run: warmed up while overloaded; the second is to hold rates; then its work counts.
    Each stands in the order in which it was done. `tag` names its folder beside the limit's."""

    tag: str
    warm_up_s: float | None = Field(
        default=None, description="From the first load until it was warm and had a backlog."
    )
    is_warm: bool | None = Field(
        default=None, description="Whether its CPU time per pageview had become flat by then."
    )
    cycle_ms: float | None = Field(
        default=None,
        description="The usual time between two updates when it was warm and had little to do; of"
        " a run that was to hold rates. Before 2026-11-23 it was looked at before it was warm.",
    )
    rates: tuple[AtRate, ...] = ()
    overloaded: tuple[Overloaded, ...] = ()


class Capacity(Part):
    """The rate at which it works when there is always more to do, with its 95 % interval."""

    per_s: float
    low: Endless
    high: Endless


class SustainableRate(Part):
    """Where its lag's p99 stayed within a bound: the highest rate tried that held, and the lowest
    above it that did not; null where there was none."""

    bound_ms: float
    held_per_s: int | None
    failed_per_s: int | None


class LimitRecord(Part):
    """The search for an engine's limit; rates are per second, of pageviews or of what `of` says.
    Version 1 held another kind of search, which found two rates by their verdicts; version 2 was of
    pageviews only, and named rates after them."""

    engine: str
    of: str = Field(default=PAGEVIEWS, description="What was raised.")
    runtime: str
    machine: Machine
    settings: dict[str, Scalar] = Field(default_factory=dict)
    outcome: str = "unfinished"
    capacity: Capacity | None = None
    sustainable: tuple[SustainableRate, ...] = ()
    runs: tuple[LimitRun, ...] = ()
    minutes: float = 0.0
    schema_version: Literal[3] = 3
    kind: Literal["limit"] = "limit"

    @property
    def is_capacity_of_all_runs(self) -> bool:
        """Whether no run ended before its work was measured. An engine may work less after more, so
        the capacity of one run is no repeat of that of two."""
        return self.capacity is not None and all(run.overloaded for run in self.runs)

    def overloaded(self) -> list[Overloaded]:
        """Of each run the time with always more to do that counts: those before it were void."""
        return [run.overloaded[-1] for run in self.runs if run.overloaded]

    def held_within_ms(self, bound_ms: float) -> float:
        """What the lag's p99 was held against where this bound was asked for."""
        cycles_ms = [run.cycle_ms for run in self.runs if run.rates and run.cycle_ms]
        return widened_ms(bound_ms, cycles_ms[-1] if cycles_ms else 0.0)


# Rates of version 2, which was of pageviews only.
_RENAMED = {
    "pageviews_per_s": "per_s",
    "held_pageviews_per_s": "held_per_s",
    "failed_pageviews_per_s": "failed_per_s",
}


def upgraded(held: dict[str, Any]) -> dict[str, Any]:
    """What a file of version 2 holds, as it would be today."""
    if held.get("schema_version") != 2:
        return held
    renamed: dict[str, Any] = _renamed(held)
    return {**renamed, "schema_version": 3}


def _renamed(part: Any) -> Any:
    if isinstance(part, list):
        return [_renamed(each) for each in part]
    if isinstance(part, dict):
        return {_RENAMED.get(key, key): _renamed(value) for key, value in part.items()}
    return part
