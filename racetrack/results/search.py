"""Models of `limit.json`, the result of a capacity search."""

from typing import Literal

from pydantic import Field

from racetrack.results.base import InfinityAsNull, Scalar, StrictModel
from racetrack.results.figures import CoreSpeed
from racetrack.results.run import Machine, Window

PAGEVIEWS = "pageviews"  # the events of the main topic, whatever the workload

VOID = (
    "Reason why noise made this window void; null if valid. Void windows are repeated, except at a"
    " CPU quota."
)

# A bound on the lag is raised to at least this many update intervals.
INTERVALS = 2

COUNTED_BEFORE = (
    "Events counted by the engine before the window; some engines become slower with more."
)


def effective_bound_ms(bound_ms: float, update_interval_ms: float) -> float:
    """Return the effective bound: `bound_ms`, but at least INTERVALS update intervals."""
    return max(bound_ms, INTERVALS * update_interval_ms)


CORE = "Speed of the cores in the window."


class SaturationWindow(StrictModel):
    """A window in which the engine always had a backlog."""

    window: Window
    counted_before: int = Field(description=COUNTED_BEFORE)
    batches_per_s: tuple[float, ...] = Field(description="Throughput of each batch.")
    backlog_min_s: float = Field(description="Smallest age of the backlog in the window.")
    backlog_max_s: float = Field(description="Largest age of the backlog in the window.")
    idle_share: float = Field(
        description="Fraction of the window in which the engine may have been idle."
    )
    view: str | None = Field(
        default=None, description="The slowest traced view; null if the count was slowest."
    )
    handed_over_per_s: float = Field(description="Rate that the generator gave its Kafka client.")
    cpu_s_per_million: dict[str, float] = Field(
        default_factory=dict,
        description="CPU seconds of each service per million events that the engine processed.",
    )
    core: CoreSpeed | None = Field(default=None, description=CORE)
    void: str | None = Field(default=None, description=VOID)


class RateTrial(StrictModel):
    """A window at a constant rate, in which the p99 of the lag is compared with a bound."""

    per_s: int
    bound_ms: float = Field(description="Effective bound: at least two update intervals.")
    drained: bool = Field(
        default=True,
        description="Whether the backlog was drained before the trial. If it was not, a failed"
        " trial may be due to the old backlog.",
    )
    window: Window
    counted_before: int = Field(description=COUNTED_BEFORE)
    lag_p50_ms: InfinityAsNull
    lag_p99_ms: InfinityAsNull
    handed_over_per_s: float = Field(description="Rate that the generator gave its Kafka client.")
    ended_early: bool = Field(
        description="Whether the trial was stopped because the bound could no longer hold."
    )
    core: CoreSpeed | None = Field(default=None, description=CORE)
    void: str | None = Field(default=None, description=VOID)


class LimitRun(StrictModel):
    """One fresh run of the search: warm-up, rate trials (second run only), saturation window. `tag`
    is the name of its run folder, which is next to the folder of the search."""

    tag: str
    warm_up_s: float | None = Field(
        default=None, description="Seconds from the first load to the end of warm-up."
    )
    is_warm: bool | None = Field(
        default=None, description="Whether CPU time per event was flat at the end of warm-up."
    )
    update_interval_ms: float | None = Field(
        default=None,
        description="Typical time between two updates at low load after warm-up; only in a run with"
        " rate trials.",
    )
    trials: tuple[RateTrial, ...] = ()
    saturation: tuple[SaturationWindow, ...] = ()


class Capacity(StrictModel):
    """Throughput at saturation with its 95 % interval."""

    per_s: float
    low: InfinityAsNull
    high: InfinityAsNull


class SustainableRate(StrictModel):
    """Highest rate at which the p99 of the lag stayed within the bound (`sustained_per_s`), and the
    lowest higher rate at which it did not (`failed_per_s`); null if there is no such rate."""

    bound_ms: float
    sustained_per_s: int | None
    failed_per_s: int | None


class SearchArguments(StrictModel):
    """Arguments of the search, as given on the command line."""

    start_per_s: int = Field(description="Rate to begin with.")
    warm_up_s: float = Field(description="Longest warm-up, seconds.")
    within_s: float = Field(description="Time limit for the search, seconds.")
    bounds_ms: tuple[float, ...] = Field(description="Bounds of the lag, milliseconds.")


class LimitRecord(StrictModel):
    """Result of a capacity search. Rates are in pageviews per second."""

    engine: str
    # Earlier versions also searched with other loads; such records can't be read.
    of: Literal["pageviews"] = "pageviews"
    runtime: str
    data_in_memory: bool = Field(
        default=True, description="Whether the services kept their data in memory, not on disk."
    )
    machine: Machine
    settings: dict[str, Scalar] = Field(default_factory=dict)
    arguments: SearchArguments
    outcome: str = "unfinished"
    capacity: Capacity | None = None
    sustainable: tuple[SustainableRate, ...] = ()
    runs: tuple[LimitRun, ...] = ()
    minutes: float = 0.0
    schema_version: Literal[5] = 5
    kind: Literal["limit"] = "limit"

    @property
    def is_capacity_of_all_runs(self) -> bool:
        """True if every run of the search has a saturation window. A capacity from one run is not
        comparable with a capacity from two, since some engines become slower the more events they
        have counted."""
        return self.capacity is not None and all(run.saturation for run in self.runs)

    def last_saturation(self) -> list[SaturationWindow]:
        """Return the last saturation window of each run; earlier ones were void."""
        return [run.saturation[-1] for run in self.runs if run.saturation]

    def applied_bound_ms(self, bound_ms: float) -> float:
        """Return the lag bound that the search used where `bound_ms` was requested; it is larger if
        the engine updates rarely."""
        cycles_ms = [
            run.update_interval_ms for run in self.runs if run.trials and run.update_interval_ms
        ]
        return effective_bound_ms(bound_ms, cycles_ms[-1] if cycles_ms else 0.0)
