"""What `run.json` holds, as one typed model; docs/run.schema.json is generated from it.

    python -m racetrack.run_record > docs/run.schema.json

Whatever writes or reads a run goes by these classes. What a run has not come to, or an older
version did not write, is absent from the file and has its default here.
"""

import json
import math
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

SCHEMA_VERSION: Literal[2] = 2

Utc = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")]
Scalar = str | int | float | bool | None
# JSON has no infinity: a lag without end is null there.
Endless = Annotated[
    float,
    BeforeValidator(lambda value: math.inf if value is None else value),
    WithJsonSchema({"type": ["number", "null"]}),
]


class Part(BaseModel):
    """A part of the record: nothing beside what is described, and nothing of another type."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True, ser_json_inf_nan="null")


class RunArguments(Part):
    """What the command line asked for."""

    pageviews_per_s: int = Field(ge=0, description="Rate; 0: idle.")
    wait_s: float = Field(gt=0, description="Seconds to settle before the window.")
    samples: int = Field(ge=1, description="Samples of top.")
    delay_s: float = Field(gt=0, description="Seconds between samples.")
    verify: bool = Field(
        default=False, description="Whether every view was to be compared with the sources."
    )
    faults: tuple[str, ...] = Field(default=(), description="Each --fault as it was given.")
    warm_up_s: float = Field(
        default=0.0, ge=0, description="Seconds at half the rate before it was set; 0: none."
    )
    decide_within_s: float = Field(
        default=0.0,
        ge=0,
        description="Seconds after the window in which it was watched on until the verdict was"
        " decided; 0: not, the window alone is judged.",
    )


class Machine(Part):
    """Where it ran."""

    cpu_model: str = Field(default="unknown CPU", description="As the kernel names it.")
    cores: int | None = Field(default=None, ge=1, description="CPUs that this process may use.")
    memory_gib: float | None = Field(default=None, description="Main memory.")
    kernel: str = Field(default="", description="Release.")
    os: str = Field(default="", description="Distribution.")

    def __str__(self) -> str:
        cores, memory_gib = (
            "?" if of is None else f"{of:g}" for of in (self.cores, self.memory_gib)
        )
        return f"{self.cpu_model}, {cores} cores, {memory_gib} GiB"


class Step(Part):
    """A step."""

    name: str = Field(description="What was done.")
    started_at: Utc = Field(description="UTC.")
    ended_at: Utc | None = Field(description="UTC; null while it lasts.")


class Window(Part):
    """The sampling window, epoch milliseconds."""

    start_ms: int = Field(description="First.")
    end_ms: int = Field(description="Last.")

    @property
    def seconds(self) -> float:
        """How long it was."""
        return (self.end_ms - self.start_ms) / 1000


class CpuTime(Part):
    """CPU seconds by mode."""

    user: float = Field(description="User mode.")
    system: float = Field(description="In the kernel.")


class Counts(Part):
    """Who counted what, once the load was paused."""

    handed_over: tuple[int, ...] = Field(
        default=(),
        description="Pageviews that the generator gave its client, by partition.",
    )
    refused: tuple[int, ...] = Field(
        default=(), description="Of these, refused for good, by partition."
    )
    end_offsets: tuple[int, ...] = Field(
        default=(), description="The broker's, by partition, after the load was paused."
    )
    engine_total: int | None = Field(
        default=None, description="Pageviews that the engine has counted; null if it never told."
    )
    engine_drained: bool = Field(
        default=False, description="Whether it came to count all that was published."
    )


class Measured(Counts):
    """Raw counts; `results` are computed from them and from the folder's other files."""

    window: Window
    rate_set_ms: int | None = Field(
        default=None, description="When the rate was set, epoch milliseconds; null if not kept."
    )
    watched_until_ms: int | None = Field(
        default=None,
        description="The last look at a verdict, epoch milliseconds, with the load still on; null"
        " where the window alone is judged.",
    )
    cpu_s: dict[str, CpuTime] = Field(
        description="CPU seconds in the window, by service, from the kernel's account."
    )
    harness_cpu_s: float = Field(description="CPU seconds of the harness and top.")


class DoneFault(Part):
    """A fault."""

    fault: str = Field(description="As it was given.")
    how: Literal["kill", "pause"] = Field(description="What was done.")
    services: tuple[str, ...] = Field(description="To which services.")
    at_ms: int = Field(description="When, epoch milliseconds.")
    until_ms: int | None = Field(
        default=None,
        description="When they ran again, and the demo where it was the engine; null if never.",
    )
    restart_s: float | None = Field(
        default=None,
        description="From the order to start them until they were ready; null for a pause.",
    )
    reload_s: float | None = Field(
        default=None,
        description="How long the engine then took to have the demo's views again; null where it"
        " was not the engine.",
    )


class FaultLog(Part):
    """What was done to the stack on purpose (--fault)."""

    from_ms: int = Field(
        description="When the rate was set, from which their seconds count, epoch milliseconds."
    )
    done: tuple[DoneFault, ...] = Field(description="In the order in which they were done.")


class Slope(Part):
    """Growth in percent of real time (1 % is 10 ms per second) with its interval."""

    pct: float = Field(description="Theil-Sen slope.")
    low_pct: float = Field(description="Lower end.")
    high_pct: float = Field(description="Upper end.")


class LagShare(Part):
    """One link's share of the processing lag."""

    p50_ms: Endless = Field(description="Median, milliseconds.")
    slope: Slope | None = Field(
        description="How it grows; null where the verdict did not depend on it."
    )


class LagAtMost(Part):
    """A point of the lag's distribution over time."""

    share: float = Field(ge=0, le=1, description="Share of the window's time.")
    lag_ms: Endless = Field(description="For so much of it, the lag was at most this.")


class Lag(Part):
    """The lag behind a verdict, milliseconds; null is without end.

    Lag is the age of the oldest pageview that is due and not counted, at every instant: what a
    reader of the view sees. Processing lag is the same right after an update, so without the wait
    for it; its quantiles are over time too: each update weighs as long as the time before it.
    """

    slope: Slope = Field(description="Of the processing lag.")
    lag_p50_ms: Endless = Field(description="Median over the window's time.")
    lag_p90_ms: Endless = Field(description="90 % of the time at most this.")
    lag_p99_ms: Endless = Field(description="99 % of the time at most this.")
    lag_max_ms: Endless = Field(description="Largest.")
    lag_distribution: tuple[LagAtMost, ...] = Field(description="By rising share.")
    processing_lag_p50_ms: Endless = Field(description="Median.")
    processing_lag_p99_ms: Endless = Field(description="99 % of the time at most this.")
    processing_lag_max_ms: Endless = Field(description="Largest.")
    generator: LagShare
    broker: LagShare
    engine: LagShare


class Throughput(Part):
    """Pageviews per second from the curves."""

    offered_per_s: float = Field(description="Due by the schedule.")
    handed_over_per_s: float = Field(description="Given to the generator's client library.")
    published_per_s: float = Field(description="In the broker.")
    processed_per_s: float | None = Field(
        description="Counted by the engine; null if it told of no update in the window: how many of"
        " those that it told of later it had counted by then, nobody knows."
    )


class VerdictKind(StrEnum):
    """What a run says of its engine."""

    KEPT_UP = "kept up"
    FELL_BEHIND = "fell behind"
    GENERATOR_BOUND = "generator-bound"
    BROKER_BOUND = "broker-bound"
    UNDECIDED = "undecided"


class Verdict(Part):
    """Did it keep up? See docs/verdict.md.

    Where a run was watched on, `updates`, `next_update_s`, `throughput` and the lag itself are
    still those of the sampling window, beside its costs.
    """

    kind: VerdictKind = Field(description="The verdict.")
    reason: str = Field(description="In words, with numbers.")
    warnings: tuple[str, ...] = Field(description="What to know before believing it.")
    threshold_pct: float = Field(
        description="Growth that counts as falling behind, percent of real time."
    )
    from_ms: int | None = Field(
        default=None,
        description="Where the transient was found to end, epoch milliseconds; null where the"
        " sampling window was judged.",
    )
    until_ms: int | None = Field(
        default=None, description="When it was looked at, epoch milliseconds; null as above."
    )
    window_s: float = Field(description="Seconds that were judged.")
    updates: int = Field(description="Updates of the engine in them.")
    next_update_s: float | None = Field(
        default=None,
        description="Seconds from the window's end to the engine's next update; null if none came.",
    )
    asked_per_s: float = Field(description="Rate asked for.")
    throughput: Throughput
    measured: Lag | None = Field(description="null where no slope could be computed.")
    shortest_window_s: float | None = Field(
        description="An estimate of the window that would decide; null where that is not known, or"
        " where this one did."
    )


class Spread(Part):
    """Over the samples in the window; null where there is none, or one has no such figure."""

    mean: float | None = Field(description="Mean.")
    sd: float | None = Field(description="Sample standard deviation; null for one sample.")
    sem: float | None = Field(description="Standard error of the mean; null for one sample.")
    max: float | None = Field(description="Largest sample.")
    samples: tuple[float, ...] = Field(description="In order.")


class Cost(Part):
    """What a service cost."""

    cpu_pct: Spread = Field(description="top's samples, percent of one core.")
    rss_gib: Spread = Field(description="Resident memory, GiB, from the kernel.")
    cpu_s: float = Field(description="CPU seconds in both modes.")
    cpu_user_s: float = Field(description="In user mode.")
    cpu_system_s: float = Field(description="In the kernel.")
    cpu_s_per_million: float | None = Field(
        default=None,
        description="Per million pageviews that the engine counted in the window; null if none.",
    )
    rss_growth_gib_per_million: float | None = Field(
        default=None, description="Memory at the window's end minus its start, per million."
    )


class Freshness(Part):
    """The published freshness: now minus the newest received_at seen, milliseconds."""

    mean: float | None = Field(description="Mean over updates.")
    p50: float | None = Field(description="Median.")
    max: float | None = Field(description="Largest.")
    updates: int = Field(description="How many.")
    next_update_s: float | None = Field(
        default=None,
        description="Seconds from the window's end to the next update; null if none came.",
    )


class HarnessCost(Part):
    """What measuring cost."""

    cpu_s: float = Field(description="CPU seconds.")
    cpu_pct: float = Field(description="Percent of one core.")


class Recovery(Part):
    """How a lag came back after a fault."""

    normal_ms: float = Field(description="What lag was at most before it, or 2 s if that is more.")
    worst_ms: float | None = Field(
        description="Largest lag until it was normal again; null is without end."
    )
    after_s: float | None = Field(
        description="Seconds from the fault's beginning; null if it was not within the record."
    )


class FaultRecovery(Part):
    """A fault that has passed."""

    fault: str = Field(description="As it was given.")
    pageviews: Recovery = Field(description="From due to counted by the engine.")
    purchases: Recovery | None = Field(
        default=None, description="From due to Debezium's topic; absent where there is none."
    )

    @property
    def lags(self) -> Mapping[str, Recovery]:
        """Those that were followed, by name."""
        return {
            "pageviews": self.pageviews,
            **({"purchases": self.purchases} if self.purchases else {}),
        }


class Results(Part):
    """Figures over the window."""

    offered_pageviews_per_s: float | None = Field(description="Due by the schedule.")
    achieved_pageviews_per_s: float | None = Field(description="Handed over.")
    published_pageviews: int = Field(description="Sum of the end offsets.")
    processed_pageviews: int | None = Field(description="Counted by the engine.")
    verdict: Verdict | None = Field(
        default=None, description="Absent from runs of versions that gave none."
    )
    dt_ms: Freshness
    processes: dict[str, Cost] = Field(description="The engine's services and the broker.")
    harness: HarnessCost
    faults: tuple[FaultRecovery, ...] = Field(
        default=(), description="Of each fault that has passed, when lag was normal again."
    )


Row = dict[str, Scalar]


class WrongRow(Part):
    """A row that is not right."""

    finding: Literal["missing", "extra", "different"] = Field(description="What is wrong.")
    source: Row | None = Field(
        description="What the sources say. Column → value; times in ISO 8601, decimals as text."
        " null: there is no such row."
    )
    engine: Row | None = Field(
        description="What the engine has. Column → value; times in ISO 8601, decimals as text."
        " null: there is no such row."
    )


class ViewStatus(StrEnum):
    """What was found of a view."""

    RIGHT = "right"
    WRONG = "wrong"
    ABSENT = "absent"
    UNREADABLE = "unreadable"


class ViewFinding(Part):
    """A view. `right`: every row is as the sources say, and no other is there. `wrong`: not so.
    `absent`: this engine's demo has no such view. `unreadable`: it could not be read or compared.
    """

    status: ViewStatus = Field(description="What was found.")
    reason: str = Field(default="", description="Why it is unreadable.")
    compared: int = Field(
        default=0,
        ge=0,
        description="Rows that the sources demand and rows that the engine has, taken together.",
    )
    missing: int = Field(default=0, ge=0, description="Rows that the engine lacks.")
    extra: int = Field(
        default=0, ge=0, description="Rows that should not be there, or are there twice."
    )
    different: int = Field(default=0, ge=0, description="Rows with another value in some column.")
    first: tuple[WrongRow, ...] = Field(
        default=(),
        description="The first rows that are not right; more stand in verify/<view>.csv.",
    )
    from_ms: int | None = Field(
        default=None,
        description="Before it was read, epoch milliseconds; for a view of the last ten minutes,"
        " the earliest time that the engine's clock may have shown.",
    )
    until_ms: int | None = Field(
        default=None, description="When it had been read, epoch milliseconds."
    )

    @property
    def is_wrong(self) -> bool:
        """Whether it counts against the engine; a view that its demo does not have does not."""
        return self.status in (ViewStatus.WRONG, ViewStatus.UNREADABLE)


class Verified(Part):
    """The views against the sources, with the load paused. See racetrack/verify/."""

    drained_after_s: float | None = Field(
        description="Seconds from the pause until the engine was seen to hold all of the sources;"
        " null if it did not in time."
    )
    drain_within_s: float = Field(description="How long it was given.")
    source_read_s: float = Field(description="Seconds to read the topics.")
    took_s: float = Field(description="Seconds to read topics and views and to compare them.")
    harness_peak_rss_gib: float = Field(
        description="The harness's highest resident memory so far, GiB; kcat has its own."
    )
    end_offsets: tuple[int, ...] = Field(
        description="The pageviews that the views were compared with: those before these offsets,"
        " by partition."
    )
    source_rows: dict[str, int] = Field(description="Rows or messages of each source.")
    relative_error: float = Field(
        description="How much two floating point numbers may differ and be equal."
    )
    views: dict[str, ViewFinding] = Field(description="By view.")

    def named(self, *statuses: ViewStatus) -> list[str]:
        """The views of these statuses, status by status."""
        return [n for status in statuses for n, v in self.views.items() if v.status is status]


class RunRecord(Part):
    """Schema version 2: in version 1, "lag" was what is processing lag here. The file is rewritten
    whole at every change: a run that broke off has what was known by then. Keys are only ever added
    within a version."""

    schema_version: Literal[2] = Field(description="Rises when a key changes its meaning or goes.")
    tag: str = Field(description="The folder's name when it was made.")
    engine: str = Field(description="As typed on the command line.")
    runtime: str = Field(
        default="unknown runtime", description="Where the services ran: native or compose."
    )
    asked: RunArguments | None = Field(default=None, description="Absent before it is known.")
    outcome: str = Field(
        default="unfinished",
        description="`ok`, `unfinished`, or why the figures can't be trusted.",
    )
    settings: dict[str, Scalar] = Field(
        default_factory=dict,
        description="Every knob of `.env` in lower case; secrets are masked.",
    )
    engine_services: tuple[str, ...] | None = Field(
        default=None,
        description="Of the services in `processes`, those that are the engine's own; a run of an"
        " older version does not say.",
    )
    caveats: tuple[str, ...] = Field(
        default=(),
        description="What to know before comparing this run with one of another engine, as the"
        " engine's module says it.",
    )
    machine: Machine = Field(default_factory=Machine)
    versions: dict[str, str] = Field(
        default_factory=dict, description="Of every part, as the part itself says."
    )
    steps: tuple[Step, ...] = Field(default=(), description="In the order in which they began.")
    measured: Measured | None = Field(default=None, description="Absent before sampling.")
    faults: FaultLog | None = Field(default=None, description="Absent where there was none.")
    results: Results | None = Field(default=None, description="Absent before sampling.")
    verified: Verified | None = Field(default=None, description="Absent without --verify.")


class _Schema(GenerateJsonSchema):
    """Without a title for every key, which would say what the key says."""

    schema_dialect = "https://json-schema.org/draft/2020-12/schema"

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False

    def generate(self, schema: Any, mode: Any = "validation") -> JsonSchemaValue:
        made = super().generate(schema, mode)
        return {"$schema": self.schema_dialect, **made}


def schema() -> dict[str, Any]:
    """The JSON Schema of `run.json`."""
    return RunRecord.model_json_schema(schema_generator=_Schema)


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2, ensure_ascii=False))
