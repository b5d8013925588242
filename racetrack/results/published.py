"""Models of `results/<workload>/<machine>/<engine>@<version>.json`: what one engine did on one
machine, as data for the page that ranks engines. docs/result.schema.json is generated from them:

    python -m racetrack.results.published > docs/result.schema.json
"""

import json
import re
from typing import Any, Literal

from pydantic import Field

from racetrack.results.base import Scalar, StrictModel
from racetrack.results.figures import LagAtMost
from racetrack.results.run import Machine, SchemaWithoutTitles

# Files in the repository stay small enough to read and to review.
MOST_BYTES = 20_000
# Words in a processor's name that tell nothing.
NOISE_WORDS = re.compile(r"\((r|tm)\)|\b(processor|cpu|core)\b|@.*", re.IGNORECASE)


class Estimate(StrictModel):
    """A mean with its 95 % interval. No figure is below 0, so neither is an interval."""

    mean: float = Field(description="Mean.")
    low: float | None = Field(
        default=None, description="Lower end; null: a single run has no interval."
    )
    high: float | None = Field(default=None, description="Upper end; null as above.")
    n: int = Field(ge=1, description="Number of runs, or of searches.")


class CapacityEstimate(Estimate):
    """Capacity in events per second. The interval of a single search is that of its batches."""

    is_lower_bound: bool = Field(
        default=False,
        description="Whether the engine goes further: it ran out of memory, or the generator was"
        " the limit.",
    )


class Sustained(StrictModel):
    """The highest rate at which the p99 of the lag stayed within a bound."""

    bound_ms: float = Field(description="Bound of the lag, milliseconds.")
    held_per_s: Estimate | None = Field(
        default=None, description="Events per second; null: at no rate tried."
    )
    failed_per_s: int | None = Field(
        default=None,
        description="Lowest rate above it at which the lag did not stay within the bound; null:"
        " none tried.",
    )


class RateFigures(StrictModel):
    """Figures at one rate: means over the runs, each over the window that its verdict judged.
    Absent figures were not measured in every run."""

    per_s: int = Field(ge=1, description="Offered events per second.")
    verdicts: dict[str, int] = Field(description="Number of runs by verdict.")
    lag_p50_ms: Estimate | None = Field(
        default=None,
        description="Lag (age of the oldest event that is due and not counted): median over time.",
    )
    lag_p99_ms: Estimate | None = Field(
        default=None, description="99 % of the time the lag was at most this."
    )
    lag_distribution: tuple[LagAtMost, ...] = Field(
        default=(), description="Distribution of the lag over time: mean over the runs."
    )
    view_lag_p50_ms: Estimate | None = Field(
        default=None,
        description="Lag of the oldest traced view (docs/views.md): median over time.",
    )
    view_lag_p99_ms: Estimate | None = Field(
        default=None, description="99 % of the time that lag was at most this."
    )
    read_time_p50_ms: Estimate | None = Field(
        default=None, description="Time from when a read was due to its answer: median."
    )
    read_time_p99_ms: Estimate | None = Field(
        default=None, description="99 % of the answers took at most this."
    )
    cpu_mean_pct: Estimate | None = Field(
        default=None, description="CPU of the engine, percent of one core."
    )
    cpu_s_per_million: Estimate | None = Field(
        default=None, description="CPU-seconds of the engine per million events counted."
    )
    memory_max_gib: Estimate | None = Field(
        default=None,
        description="Memory of the engine, GiB: PSS plus files on tmpfs, the larger of two readings"
        " before and after the sampling window.",
    )
    rss_max_gib: Estimate | None = Field(
        default=None,
        description="Maximum resident memory over the whole run, GiB; a shared page counts once per"
        " process.",
    )


class CpuLine(StrictModel):
    """CPU as a line over rates, from runs that kept up; see docs/results.md."""

    base_pct: Estimate = Field(description="At rate 0, percent of one core, extrapolated.")
    s_per_million: Estimate = Field(
        description="CPU-seconds for each million events more; n counts runs."
    )


class ViewCheck(StrictModel):
    """Views of the engine compared with their sources."""

    runs: int = Field(ge=0, description="Number of runs that compared them; 0: none did.")
    of_workload: int | None = Field(default=None, description="Number of views of the workload.")
    right: tuple[str, ...] = Field(description="Views that were right in all of these runs.")
    wrong: tuple[str, ...] = Field(description="Views that were wrong or unreadable in some run.")
    absent: tuple[str, ...] = Field(description="Views that the engine's script does not make.")


class NoiseRange(StrictModel):
    """Other use of the machine during the runs; null: unknown."""

    foreign_cpu_max_pct: float | None = Field(
        default=None, description="Highest CPU of other programs in any run, percent of one core."
    )
    steal_max_pct: float | None = Field(
        default=None,
        description="Highest CPU time that the hypervisor gave to others, percent of all cores.",
    )
    core_min_mib_per_s: float | None = Field(
        default=None,
        description="Speed of the cores in the slowest run, MiB of BLAKE2b per second of CPU time.",
    )
    core_max_mib_per_s: float | None = Field(
        default=None, description="The same in the fastest run."
    )


class RawData(StrictModel):
    """The raw files behind the figures. `sha256` is that of the output of
    `sha256sum <folder>/<file> …` for all of them in order of name (see results/README.md)."""

    folders: tuple[str, ...] = Field(description="Names of the run folders.")
    files: int = Field(ge=1, description="Number of files.")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 over all files.")


class EngineResult(StrictModel):
    """Result of one engine version on one machine under one workload."""

    schema_version: Literal[1] = 1
    kind: Literal["result"] = "result"
    workload: str = Field(description="Name of the workload.")
    engine: str = Field(description="Name of the engine on the command line.")
    title: str = Field(description="The engine as a person knows it.")
    version: str = Field(description="Version of the engine.")
    variant: str = Field(default="", description="Name of a configuration; empty: the usual one.")
    runtime: str = Field(description="How the services ran, such as `native`.")
    machine: Machine
    measured_from: str = Field(description="Day of the first run, ISO 8601.")
    measured_until: str = Field(description="Day of the last run.")
    commands: tuple[str, ...] = Field(description="Commands that repeat the measurement.")
    versions: dict[str, str] = Field(description="Versions of all components.")
    settings: dict[str, Scalar] = Field(
        description="Settings that differ from the defaults in `.env`, in lower case."
    )
    guarantee: str = Field(
        description="How often an event counts after the engine was killed; empty: not known."
    )
    caveats: tuple[str, ...] = Field(description="What to know before comparing engines.")
    capacity: CapacityEstimate | None = Field(default=None, description="null: not searched.")
    sustained: tuple[Sustained, ...] = Field(default=(), description="By bound.")
    rates: tuple[RateFigures, ...] = Field(default=(), description="By rising rate.")
    cpu_line: CpuLine | None = Field(
        default=None, description="null: fewer than three runs, or two rates, that kept up."
    )
    views: ViewCheck
    noise: NoiseRange
    left_out: tuple[str, ...] = Field(
        default=(), description="Runs and searches that do not count, each with the reason."
    )
    raw: RawData

    @property
    def file_name(self) -> str:
        """Path below `results/`, safe as a file name."""
        variant = f"+{slug(self.variant)}" if self.variant else ""
        place = slug_of_place(self.machine, self.runtime)
        name = f"{slug(self.engine)}@{slug(self.version)}{variant}.json"
        return f"{slug(self.workload)}/{place}/{name}"

    def as_text(self) -> str:
        """Return the content of its file; what is not known is left out."""
        dumped = json.loads(self.model_dump_json(exclude_none=True))
        return json.dumps(dumped, indent=1, ensure_ascii=False)


def slug(text: str) -> str:
    """Return a text as part of a file name: lower case, digits, dots and dashes."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "unknown"


def slug_of_place(machine: Machine, runtime: str) -> str:
    """Return the name of the folder for results of a machine; one of its own for each runtime
    except the native one, since their figures are not comparable."""
    memory = "" if machine.memory_gib is None else f"{machine.memory_gib:.0f}-gib"
    parts = [
        NOISE_WORDS.sub(" ", machine.cpu_model),
        machine.cpu_numbers,
        f"{machine.cores}-cores" if machine.cores else "",
        memory,
        "" if runtime == "native" else runtime,
    ]
    return slug(" ".join(parts))


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a result."""
    return EngineResult.model_json_schema(schema_generator=SchemaWithoutTitles)


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2, ensure_ascii=False))
