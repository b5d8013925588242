"""What `run.json` holds, as one typed model; docs/run.schema.json is generated from it.

    python -m racetrack.results.run > docs/run.schema.json

Whatever writes or reads a run goes by these classes, and by those of `results_record.py` and
`verified_record.py`. What a run has not come to is absent from the file and has its default here.
"""

import json
from typing import Any, Literal

from pydantic import Field
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from racetrack.results.base import Scalar, StrictModel, Utc
from racetrack.results.figures import Results
from racetrack.results.verification import Verified

SCHEMA_VERSION: Literal[3] = 3


class RunArguments(StrictModel):
    """What the command line asked for."""

    pageviews_per_s: int = Field(ge=0, description="Rate; 0: idle.")
    wait_s: float = Field(ge=0, description="Seconds to settle before the window.")
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


class Machine(StrictModel):
    """Where it ran."""

    cpu_model: str = Field(default="unknown CPU", description="As the kernel names it.")
    cpu_numbers: str = Field(
        default="",
        description="What tells processors of one name apart: family and model, or implementer and"
        " part.",
    )
    cores: int | None = Field(default=None, ge=1, description="CPUs that this process may use.")
    memory_gib: float | None = Field(default=None, description="Main memory.")
    kernel: str = Field(default="", description="Release.")
    os: str = Field(default="", description="Distribution.")

    def __str__(self) -> str:
        cores, memory_gib = (
            "?" if of is None else f"{of:g}" for of in (self.cores, self.memory_gib)
        )
        numbers = f" ({self.cpu_numbers})" if self.cpu_numbers else ""
        return f"{self.cpu_model}{numbers}, {cores} cores, {memory_gib} GiB"


class Step(StrictModel):
    """A step."""

    name: str = Field(description="What was done.")
    started_at: Utc = Field(description="UTC.")
    ended_at: Utc | None = Field(description="UTC; null while it lasts.")


class Window(StrictModel):
    """The sampling window, epoch milliseconds."""

    start_ms: int = Field(description="First.")
    end_ms: int = Field(description="Last.")

    @property
    def seconds(self) -> float:
        """How long it was."""
        return (self.end_ms - self.start_ms) / 1000


class CpuTime(StrictModel):
    """CPU seconds by mode."""

    user: float = Field(description="User mode.")
    system: float = Field(description="In the kernel.")

    def since(self, earlier: "CpuTime") -> "CpuTime":
        """Return what was used between two readings."""
        return CpuTime(user=self.user - earlier.user, system=self.system - earlier.system)


class Counts(StrictModel):
    """Counts of generator, broker and engine after the load was paused."""

    paused_ms: int | None = Field(
        default=None, description="When the load was paused, epoch milliseconds."
    )
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
    rate_set_ms: int = Field(description="When the rate was set, epoch milliseconds.")
    watched_until_ms: int | None = Field(
        default=None,
        description="The last look at a verdict, epoch milliseconds, with the load still on; null"
        " where the window alone is judged.",
    )
    cpu_s: dict[str, CpuTime] = Field(
        description="CPU seconds in the sampling window, by service, from the kernel's account."
    )


class DoneFault(StrictModel):
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


class FaultLog(StrictModel):
    """What was done to the stack on purpose (--fault)."""

    from_ms: int = Field(
        description="When the rate was set, from which their seconds count, epoch milliseconds."
    )
    done: tuple[DoneFault, ...] = Field(description="In the order in which they were done.")


class TracedViewRecord(StrictModel):
    """A view followed with tracer events. Tracer event n (from 0) is in partition n // 2 modulo the
    number of partitions. A row of views.csv is about the tracer events of one partition that show
    in the view."""

    name: str = Field(description="View and column, as in views.csv.")
    source: str = Field(
        description="Source of its tracer events: the main topic, or a table by CDC."
    )
    parity: int | None = Field(
        description="Tracer events that show in it: 0 those of even n, 1 those of odd n, null both."
    )
    is_time: bool = Field(
        description="Whether a row says when the newest was due, epoch milliseconds; else it counts"
        " them."
    )


class QueryRecord(StrictModel):
    """A query of the view reader."""

    name: str = Field(description="As in reads.csv.")
    traced_view: str | None = Field(
        description="The traced view whose rows of tracer events were read; null: all rows."
    )


class RunRecord(StrictModel):
    """The record of a run. The file is rewritten whole at every change: a run that broke off has
    what was known by then. Keys are only ever added within a version."""

    schema_version: Literal[3] = Field(description="Rises when a key changes its meaning or goes.")
    run_id: str = Field(description="A UUID: copies of the folder are the same run.")
    tag: str = Field(description="The folder's name when it was made.")
    engine: str = Field(description="As typed on the command line.")
    runtime: str = Field(
        default="unknown runtime", description="Where the services ran: native or compose."
    )
    data_in_memory: bool = Field(
        default=True, description="Whether the services kept their data in memory, not on disk."
    )
    asked: RunArguments | None = Field(default=None, description="Absent before it is known.")
    outcome: str = Field(
        default="unfinished",
        description="`ok`, `unfinished`, or why the figures can't be trusted.",
    )
    settings: dict[str, Scalar] = Field(
        default_factory=dict,
        description="Every setting in `.env` in lower case; secrets are masked.",
    )
    engine_services: tuple[str, ...] = Field(
        default=(), description="Of the services in `processes`, those that are the engine's own."
    )
    caveats: tuple[str, ...] = Field(
        default=(),
        description="What to know before comparing this run with one of another engine, as the"
        " engine's module says it.",
    )
    workload_views: int | None = Field(
        default=None,
        description="How many views the workload has; null for an engine without a script.",
    )
    absent_views: tuple[str, ...] = Field(
        default=(),
        description="Those that the engine's script does not make, as the engine's module says it.",
    )
    summary_after_ms: int = Field(
        default=0,
        description="How much later than its progress the engine may tell its summary, or earlier,"
        " as its module says it: Little's law allows for that.",
    )
    traced_views: tuple[TracedViewRecord, ...] = Field(
        default=(), description="Views followed with tracer events; empty without them."
    )
    queries: tuple[QueryRecord, ...] = Field(
        default=(), description="Queries of the view reader, in turn; empty without it."
    )
    event_window_ms: int | None = Field(
        default=None, description="Length of the workload's windows of event time, if it has any."
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
