"""Model of `run.json`, from which docs/run.schema.json is generated.

    python -m racetrack.results.run > docs/run.schema.json

All code that writes or reads a run uses these classes and the classes of `figures.py` and
`verification.py`. If a run ended early, keys that it would have written later are absent; reading
gives their defaults.
"""

import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from racetrack.results.base import InfinityAsNull, Scalar, StrictModel, Utc
from racetrack.results.classes import Classes
from racetrack.results.figures import Results
from racetrack.results.verification import Verified

SCHEMA_VERSION: Literal[6] = 6
VOID = "Void: "
THROTTLED = f"{VOID}the CPU quota"


def is_void(outcome: str) -> bool:
    """Return whether the run is void because other programs or machines disturbed it. It has to be
    repeated."""
    return outcome.startswith(VOID)


def is_throttled(outcome: str) -> bool:
    """Return whether the run is void because of a CPU quota, which would make a repetition void,
    too."""
    return outcome.startswith(THROTTLED)


def runtime_label(runtime: str, settings: Mapping[str, Scalar]) -> str:
    """Return the name of a runtime. Locally built images count as a separate runtime, since they
    contain another broker, and so do pods that share nodes and cores."""
    if runtime == "kubernetes" and settings.get("kubernetes_small", False):
        return "kubernetes, small"
    if runtime == "compose" and settings.get("airgap", False):
        return "compose, images made here"
    return runtime


KAFKA, REDPANDA, KAFKA_ELSEWHERE = "Apache Kafka", "Redpanda", "Kafka elsewhere"
UNKNOWN = "unknown runtime"
ON_DISK = ", data on disk"  # end of the label of a runtime in published results


def broker_of(runtime_label: str, settings: Mapping[str, Scalar] | None = None) -> str:
    """Return the broker of a run, given its runtime as `runtime_label` describes it; "" if the
    runtime is unknown."""
    if (settings or {}).get("kafka_bootstrap_servers"):
        return KAFKA_ELSEWHERE
    if runtime_label in ("", UNKNOWN):
        return ""
    return REDPANDA if runtime_label.removesuffix(ON_DISK) == "compose" else KAFKA


class RunArguments(StrictModel):
    """Arguments of the run, as given on the command line."""

    events_per_s: int = Field(ge=0, description="Requested rate; 0: idle.")
    share: float | None = Field(
        default=None,
        gt=0,
        description="Requested rate as a share of the engine's capacity; null if the rate was given"
        " in events per second.",
    )
    wait_s: float = Field(ge=0, description="Seconds to settle before the sampling window.")
    samples: int = Field(ge=1, description="Number of samples of top.")
    delay_s: float = Field(gt=0, description="Seconds between samples of top.")
    verify: bool = Field(
        default=False, description="Whether views are compared with their sources."
    )
    faults: tuple[str, ...] = Field(default=(), description="Each --fault, as on the command line.")
    load: str | None = Field(
        default=None,
        description="Load profile, as for --load; null: one rate. `events_per_s` is then its mean.",
    )
    warm_up_s: float = Field(
        default=0.0, ge=0, description="Seconds at half the rate, before the rate was set; 0: none."
    )
    decide_within_s: float = Field(
        default=0.0,
        ge=0,
        description="Longest extension of the window until the verdict is decided, seconds; 0: only"
        " the window is judged.",
    )


class CpuQuota(StrictModel):
    """CPU quota of a control group that contains processes of the run."""

    cores: float = Field(gt=0, description="CPU seconds per second.")
    group: str = Field(description="Folder of the control group.")
    services: tuple[str, ...] = Field(
        default=(),
        description="Services in the group, and `harness`, if no smaller quota limits them; empty:"
        " all.",
    )

    def __str__(self) -> str:
        services = f" for {', '.join(self.services)}" if self.services else ""
        return f"{self.cores:g} cores{services}"


class Machine(StrictModel):
    """Machine of the run."""

    cpu_model: str = Field(default="unknown CPU", description="As the kernel names it.")
    cpu_numbers: str = Field(
        default="",
        description="Family and model, or implementer and part, since different processors may have"
        " the same cpu_model.",
    )
    cores: int | None = Field(default=None, ge=1, description="CPUs that this process may use.")
    cpu_quotas: tuple[CpuQuota, ...] = Field(
        default=(), description="CPU quotas that allow the run less than all cores."
    )
    memory_gib: float | None = Field(
        default=None, description="Main memory, or a smaller limit of a control group."
    )
    kernel: str = Field(default="", description="Release of the kernel.")
    os: str = Field(default="", description="Name of the Linux distribution.")

    def __str__(self) -> str:
        cores, memory_gib = (
            "?" if number is None else f"{number:g}" for number in (self.cores, self.memory_gib)
        )
        numbers = f" ({self.cpu_numbers})" if self.cpu_numbers else ""
        parts = (f"{cores} cores", self.quota, f"{memory_gib} GiB")
        return ", ".join(filter(None, (f"{self.cpu_model}{numbers}", *parts)))

    @property
    def quota(self) -> str:
        """The CPU quotas in words, without their groups; empty if there are none."""
        return f"CPU quota {' and '.join(map(str, self.cpu_quotas))}" if self.cpu_quotas else ""


class Step(StrictModel):
    """A step of the run."""

    name: str = Field(description="Name of the step.")
    started_at: Utc = Field(description="Start, UTC.")
    ended_at: Utc | None = Field(description="End, UTC; null while the step runs.")


class Window(StrictModel):
    """The sampling window, epoch milliseconds."""

    start_ms: int = Field(description="Start.")
    end_ms: int = Field(description="End.")

    @property
    def seconds(self) -> float:
        """Length of the window in seconds."""
        return (self.end_ms - self.start_ms) / 1000


class CpuTime(StrictModel):
    """CPU seconds in user and kernel mode."""

    user: float = Field(description="CPU seconds in user mode.")
    system: float = Field(description="CPU seconds in kernel mode.")

    def since(self, earlier: "CpuTime") -> "CpuTime":
        """Return the CPU time used since an earlier reading."""
        return CpuTime(user=self.user - earlier.user, system=self.system - earlier.system)


class Counts(StrictModel):
    """Counts of generator, broker and engine after the load was paused."""

    paused_ms: int | None = Field(
        default=None, description="When the load was paused, epoch milliseconds."
    )
    handed_over: tuple[int, ...] = Field(
        default=(),
        description="Events that the generator handed to its Kafka client, by partition.",
    )
    refused: tuple[int, ...] = Field(
        default=(), description="Events that could finally not be delivered, by partition."
    )
    end_offsets: tuple[int, ...] = Field(
        default=(), description="End offsets in the broker, by partition."
    )
    engine_total: int | None = Field(
        default=None, description="Events counted by the engine; null if it reported none."
    )
    engine_drained: bool = Field(
        default=False, description="Whether the engine counted all events in the broker."
    )


class Measured(Counts):
    """Raw counts and times of a run. The figures under `results` in `run.json` are computed from
    these and from the other files of the run folder."""

    window: Window
    rate_set_ms: int = Field(description="When the rate was set, epoch milliseconds.")
    watched_until_ms: int | None = Field(
        default=None,
        description="Time of the last check of the verdict under load, epoch milliseconds; null if"
        " only the window is judged.",
    )
    cpu_s: dict[str, CpuTime] = Field(
        description="CPU seconds in the sampling window, by service, from kernel counters."
    )


class DoneFault(StrictModel):
    """A fault that was injected."""

    fault: str = Field(description="The fault in the syntax of `--fault`.")
    how: Literal["kill", "pause", "delete", "drain", "cut"] = Field(description="Kind of fault.")
    services: tuple[str, ...] = Field(description="Affected services.")
    at_ms: int = Field(description="Start, epoch milliseconds.")
    counted: int | None = Field(
        default=None,
        description="Events that the engine had counted before; null if it is not known.",
    )
    until_ms: int | None = Field(
        default=None,
        description="When the services ran again and, after a fault of the engine, its demo was"
        " loaded again; null if that did not happen.",
    )
    restart_s: float | None = Field(
        default=None,
        description="Seconds from restart to ready; null for a pause or a cut.",
    )
    reload_s: float | None = Field(
        default=None,
        description="Seconds to load the engine's demo again; null for other services.",
    )


class FaultLog(StrictModel):
    """Injected faults (--fault)."""

    from_ms: int = Field(
        description="When the rate was set, epoch milliseconds. Times in `--fault` count from here."
    )
    done: tuple[DoneFault, ...] = Field(description="Injected faults in order of time.")


class LoadLog(StrictModel):
    """Load profile of the run (--load). `load.csv` contains each rate and when it was set."""

    profile: str = Field(description="The profile, as in `arguments.load`.")
    from_ms: int = Field(description="Start of the profile, epoch milliseconds.")
    peak_from_ms: int | None = Field(
        default=None, description="Start of the spike, epoch milliseconds; null without a spike."
    )
    peak_until_ms: int | None = Field(
        default=None, description="End of the spike, epoch milliseconds; null without a spike."
    )


class LiveLog(StrictModel):
    """A live session (`./race live`). `actions.csv` contains what the user did."""

    from_ms: int = Field(description="When the load began, epoch milliseconds.")
    until_ms: int | None = Field(
        default=None, description="When the load was paused; null if the session broke off."
    )
    actions: int = Field(default=0, description="Number of rows in `actions.csv`.")
    replay_of: str | None = Field(
        default=None, description="Folder of the session whose actions were replayed."
    )


class TracedViewRecord(StrictModel):
    """A traced view: its lag is measured with tracer events. Tracer event n (from 0) is in
    partition n // 2 modulo the number of partitions. A row of views.csv gives the state of one
    partition's tracer events in the view."""

    name: str = Field(description="View and column, as in views.csv.")
    source: str = Field(
        description="Source of the tracer events: the main topic, or a table by CDC."
    )
    parity: int | None = Field(
        description="Tracer events that the view receives: 0: even n; 1: odd n; null: all."
    )
    is_time: bool = Field(
        description="Whether the value in views.csv is the due time of the newest tracer event"
        " (epoch milliseconds) instead of the number of tracer events."
    )


class QueryRecord(StrictModel):
    """A query of the view reader."""

    name: str = Field(description="Name of the query in reads.csv.")
    traced_view: str | None = Field(
        description="The traced view whose tracer rows the query reads; null: it reads all rows of"
        " a view."
    )


class EngineResult(StrictModel):
    """Result of one engine of a run with several engines on one input. The engine's own `run.json`
    is in the subfolder with its name."""

    engine: str = Field(description="Engine name, and name of the subfolder.")
    outcome: str = Field(min_length=1, description="As in the engine's own `run.json`.")
    results: Results | None = Field(description="As in the engine's own `run.json`.")


# Names of the windows that have no load of their own: at saturation, and a whole search; and the
# beginning of the names of windows whose rate a search chose.
SATURATION, SEARCH, TRIAL = "saturation", "search", "trial at "


class WindowRecord(StrictModel):
    """A measured window of a run that has several windows, or one at saturation."""

    name: str = Field(
        description="Name of the window, unique in the run: `5,000/s`, `50 % of capacity`,"
        " `saturation`; of a search `search`, and `trial at 50 % of capacity` for each rate tried."
    )
    per_s: int | None = Field(
        default=None, ge=0, description="Requested rate, events per second; null at saturation."
    )
    share: float | None = Field(
        default=None,
        gt=0,
        description="Requested rate as a share of the engine's capacity; null if the rate was given"
        " in events per second.",
    )
    start_ms: int | None = Field(
        default=None, description="Start, epoch milliseconds; null if it was not reached."
    )
    end_ms: int | None = Field(default=None, description="End, epoch milliseconds.")
    rate_set_ms: int | None = Field(
        default=None, description="When the rate was set, epoch milliseconds."
    )
    outcome: str = Field(default="ok", min_length=1, description="As the outcome of a run.")
    verdict: str = Field(default="none", description="Verdict; `none` at saturation.")
    figures: dict[str, InfinityAsNull] = Field(
        default_factory=dict,
        description="Figures by key; null stands for infinity, and what was not measured is"
        " absent.",
    )
    at_least: tuple[str, ...] = Field(
        default=(), description="Keys of figures whose true value may be higher."
    )
    remark: str = Field(default="", description="Reason for a lower bound or a verdict.")


class PartOf(StrictModel):
    """The experiment of which the run is a part."""

    experiment: str = Field(description="Name of the experiment's folder when it was made.")
    variant: str = Field(description="Label of the engine with its settings: `dh[CYCLE_MS=100]`.")
    repeat: int = Field(ge=1, description="Number of the repeat.")
    phases: str = Field(
        default="",
        description="Hash of the plan's phases without loads; figures of windows are only compared"
        " if it is equal.",
    )


class RunRecord(StrictModel):
    """Record of a run. The file is rewritten at every change, so the file of an aborted run is up
    to date. Within a schema version, keys are only added."""

    schema_version: Literal[6] = Field(
        description="Increases when a key is removed or changes its meaning."
    )
    run_id: str = Field(description="UUID, the same in copies of the folder.")
    tag: str = Field(description="Original name of the folder.")
    engine: str = Field(
        description="Engine name; the names of several engines on one input are joined by `+`."
    )
    beside: tuple[str, ...] = Field(
        default=(),
        description="Other engines that read the same input on this machine at the same time.",
    )
    engines: tuple[EngineResult, ...] = Field(
        default=(), description="One result per engine; empty in the record of a single engine."
    )
    part_of: PartOf | None = Field(
        default=None, description="Absent unless the run is part of an experiment."
    )
    runtime: str = Field(default=UNKNOWN, description="native, compose or kubernetes.")
    broker: str = Field(
        default="",
        description="Apache Kafka, Redpanda, or Kafka elsewhere; empty in earlier runs.",
    )
    data_in_memory: bool = Field(
        default=True, description="Whether the services kept their data in memory, not on disk."
    )
    arguments: RunArguments | None = Field(
        default=None, description="Arguments of the run; absent at its very beginning."
    )
    outcome: str = Field(
        min_length=1,
        default="unfinished",
        description="`ok`, `unfinished`, or why the figures can't be trusted.",
    )
    settings: dict[str, Scalar] = Field(
        default_factory=dict,
        description="Every setting of `.env` in lower case; secrets are masked.",
    )
    engine_services: tuple[str, ...] = Field(
        default=(), description="Services in `processes` that belong to the engine."
    )
    caveats: tuple[str, ...] = Field(
        default=(),
        description="Caveats of the engine for comparisons with other engines.",
    )
    classes: Classes = Field(
        default_factory=Classes,
        description="Classes of the engine with these settings, for comparisons.",
    )
    workload_views: int | None = Field(
        default=None,
        description="Number of views of the workload; null for an engine without a script.",
    )
    absent_views: tuple[str, ...] = Field(
        default=(),
        description="Views that the engine's script does not create.",
    )
    summary_after_ms: int = Field(
        default=0,
        description="Largest time between the engine's reports of the same events in its"
        " progress and in its summary; used as a tolerance in Little's law.",
    )
    traced_views: tuple[TracedViewRecord, ...] = Field(
        default=(), description="Traced views; empty without tracer events."
    )
    queries: tuple[QueryRecord, ...] = Field(
        default=(), description="Queries of the view reader, in the order of reading; may be empty."
    )
    event_window_ms: int | None = Field(
        default=None, description="Length of the workload's event-time windows, if it has any."
    )
    machine: Machine = Field(default_factory=Machine)
    versions: dict[str, str] = Field(
        default_factory=dict, description="Version of each component, as the component reports it."
    )
    steps: tuple[Step, ...] = Field(default=(), description="Steps in order of their start.")
    measured: Measured | None = Field(default=None, description="Absent before sampling.")
    windows: tuple[WindowRecord, ...] = Field(
        default=(),
        description="Measured windows; empty if there is just the one that `results` describe.",
    )
    faults: FaultLog | None = Field(default=None, description="Absent without faults.")
    load: LoadLog | None = Field(default=None, description="Absent without a load profile.")
    live: LiveLog | None = Field(default=None, description="Absent unless it is a live session.")
    results: Results | None = Field(default=None, description="Absent before sampling.")
    verified: Verified | None = Field(default=None, description="Absent without --verify.")

    @property
    def runtime_label(self) -> str:
        """The runtime, as `runtime_label` describes it."""
        return runtime_label(self.runtime, self.settings)

    @property
    def known_broker(self) -> str:
        """The recorded broker; in runs of earlier versions, that of their runtime."""
        return self.broker or broker_of(self.runtime_label, self.settings)


class SchemaWithoutTitles(GenerateJsonSchema):
    """Generator of a schema that omits titles, since they would repeat the keys."""

    schema_dialect = "https://json-schema.org/draft/2020-12/schema"

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False

    def generate(self, schema: Any, mode: Any = "validation") -> JsonSchemaValue:
        made = super().generate(schema, mode)
        return {"$schema": self.schema_dialect, **made}


def schema() -> dict[str, Any]:
    """Return the JSON Schema of `run.json`."""
    return RunRecord.model_json_schema(schema_generator=SchemaWithoutTitles)


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2, ensure_ascii=False))
