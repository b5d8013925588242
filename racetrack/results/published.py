"""Models of `results/<workload>/<machine>/<engine>@<version>.json`: results of one engine on one
machine, from which the page that ranks engines is made. docs/result.schema.json is generated from
these models:

    python -m racetrack.results.published > docs/result.schema.json
"""

import json
import re
from typing import Any, Literal

from pydantic import Field

from racetrack.results.base import Scalar, StrictModel
from racetrack.results.figures import LagAtMost
from racetrack.results.run import Machine, SchemaWithoutTitles

# Size limit of a file, so that files in the repository can be read and reviewed.
MOST_BYTES = 20_000
# Words in a processor's name that do not help to identify it.
NOISE_WORDS = re.compile(r"\((r|tm)\)|\b(processor|cpu|core)\b|@.*", re.IGNORECASE)


class Estimate(StrictModel):
    """A mean with its 95 % interval, which does not extend below 0, since no figure can. Of runs it
    is the geometric mean, and the variance is that of all rates of the engine."""

    mean: float = Field(description="Mean.")
    low: float | None = Field(
        default=None, description="Lower end of the interval; null if it is unknown."
    )
    high: float | None = Field(
        default=None, description="Upper end of the interval; null if it is unknown."
    )
    n: int = Field(ge=1, description="Number of runs or searches.")
    freedom: float | None = Field(
        default=None,
        description="Degrees of freedom of Student's t in the interval; null: n - 1.",
    )


class CapacityEstimate(Estimate):
    """Capacity in events per second. For a single search, the interval is that over its batches."""

    is_lower_bound: bool = Field(
        default=False,
        description="Whether the capacity may be higher, because the engine ran out of memory or"
        " the generator was the bottleneck.",
    )


class Sustained(StrictModel):
    """The highest rate at which the p99 of the lag stayed within a bound."""

    bound_ms: float = Field(description="Bound of the lag, milliseconds.")
    sustained_per_s: Estimate | None = Field(
        default=None,
        description="Events per second; null if no tried rate stayed within the bound.",
    )
    failed_per_s: int | None = Field(
        default=None,
        description="Lowest higher rate at which the lag did not stay within the bound; null if"
        " none was tried.",
    )


class RateFigures(StrictModel):
    """Figures at one rate: means over the runs. The figure of a run covers the window that its
    verdict judged. A figure is absent unless it was measured in every run."""

    per_s: int = Field(ge=1, description="Offered events per second.")
    verdicts: dict[str, int] = Field(description="Number of runs by verdict.")
    lag_p50_ms: Estimate | None = Field(
        default=None,
        description="Median over time of the lag, the age of the oldest event that is due but not"
        " counted.",
    )
    lag_p99_ms: Estimate | None = Field(
        default=None, description="Lag not exceeded in 99 % of the time."
    )
    lag_distribution: tuple[LagAtMost, ...] = Field(
        default=(), description="Distribution of the lag over time, averaged over the runs."
    )
    view_lag_p50_ms: Estimate | None = Field(
        default=None,
        description="Median over time of the lag of the traced view with the highest lag"
        " (docs/views.md).",
    )
    view_lag_p99_ms: Estimate | None = Field(
        default=None, description="Lag of that view not exceeded in 99 % of the time."
    )
    read_time_p50_ms: Estimate | None = Field(
        default=None, description="Median response time of reads, from when they were due."
    )
    read_time_p99_ms: Estimate | None = Field(
        default=None, description="99th percentile of the response time of reads."
    )
    cpu_mean_pct: Estimate | None = Field(
        default=None, description="Mean CPU use of the engine, percent of one core."
    )
    cpu_s_per_million: Estimate | None = Field(
        default=None, description="CPU seconds of the engine per million events counted."
    )
    memory_max_gib: Estimate | None = Field(
        default=None,
        description="Memory of the engine, GiB: PSS plus files on tmpfs. Read under"
        " load, after the measured window.",
    )
    rss_max_gib: Estimate | None = Field(
        default=None,
        description="Maximum resident memory in the whole run, GiB. A shared page counts once for"
        " each process.",
    )


class CpuLine(StrictModel):
    """CPU use as a linear function of the rate, fitted to runs that kept up."""

    base_pct: Estimate = Field(
        description="CPU use extrapolated to rate 0, percent of one core; n is the number of runs."
    )
    s_per_million: Estimate = Field(
        description="CPU seconds per additional million events; n is the number of runs."
    )


class ViewCheck(StrictModel):
    """Verification of the engine's views against their sources."""

    runs: int = Field(ge=0, description="Number of runs that verified views.")
    of_workload: int | None = Field(default=None, description="Number of views of the workload.")
    right: tuple[str, ...] = Field(description="Views that were right in all of these runs.")
    wrong: tuple[str, ...] = Field(description="Views that were wrong or unreadable in any run.")
    absent: tuple[str, ...] = Field(description="Views that the engine's script does not create.")


class NoiseRange(StrictModel):
    """Noise of the machine during the runs; null: unknown."""

    foreign_cpu_max_pct: float | None = Field(
        default=None,
        description="Highest CPU use of other programs in any run, percent of one core.",
    )
    steal_max_pct: float | None = Field(
        default=None,
        description="Highest steal time in any run: CPU time that the hypervisor gave to others,"
        " percent of all cores' time.",
    )
    core_min_mib_per_s: float | None = Field(
        default=None,
        description="Core speed in the slowest run, MiB of BLAKE2b per second of CPU time.",
    )
    core_max_mib_per_s: float | None = Field(
        default=None,
        description="Core speed in the fastest run, MiB of BLAKE2b per second of CPU time.",
    )


class RawData(StrictModel):
    """Raw files from which the figures were computed. `sha256` is the hash of the output of
    `sha256sum <folder>/<file> …` for all files in the order of their names (see
    results/README.md)."""

    folders: tuple[str, ...] = Field(description="Names of the run folders.")
    files: int = Field(ge=1, description="Number of files.")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="Hash over all files.")


class EngineResult(StrictModel):
    """Results of one version of an engine on one machine, for one workload."""

    schema_version: Literal[1] = 1
    kind: Literal["result"] = "result"
    workload: str = Field(description="Name of the workload.")
    engine: str = Field(description="Name of the engine on the command line.")
    title: str = Field(description="Name of the engine for people.")
    version: str = Field(description="Version of the engine.")
    variant: str = Field(default="", description="Name of a configuration; empty: the usual one.")
    runtime: str = Field(description="How the services ran, such as `native`.")
    machine: Machine
    measured_from: str = Field(description="Date of the first run, ISO 8601.")
    measured_until: str = Field(description="Date of the last run, ISO 8601.")
    commands: tuple[str, ...] = Field(description="Commands that repeat the measurement.")
    versions: dict[str, str] = Field(description="Versions of all components.")
    settings: dict[str, Scalar] = Field(
        description="Settings that differ from the defaults in `.env`, in lower case."
    )
    heap_rule: str | None = Field(
        default=None,
        description="How `./race compare` sized the engine's heap, or that it has none; null if no"
        " comparison was published.",
    )
    guarantee: str = Field(
        description="Delivery guarantee: how often an event is counted if the engine is killed and"
        " restarted; empty: unknown."
    )
    caveats: tuple[str, ...] = Field(description="Warnings for comparisons with other engines.")
    capacity: CapacityEstimate | None = Field(
        default=None, description="null if no capacity search was made."
    )
    sustained: tuple[Sustained, ...] = Field(default=(), description="Sustained rates by bound.")
    rates: tuple[RateFigures, ...] = Field(default=(), description="Figures by rising rate.")
    cpu_line: CpuLine | None = Field(
        default=None, description="null if fewer than three runs or two rates kept up."
    )
    views: ViewCheck
    noise: NoiseRange
    left_out: tuple[str, ...] = Field(
        default=(), description="Runs and searches that were left out, each with the reason."
    )
    raw: RawData

    @property
    def file_name(self) -> str:
        """Path of the file, relative to `results/`."""
        variant = f"+{slug(self.variant)}" if self.variant else ""
        place = slug_of_place(self.machine, self.runtime)
        name = f"{slug(self.engine)}@{slug(self.version)}{variant}.json"
        return f"{slug(self.workload)}/{place}/{name}"

    def as_text(self) -> str:
        """Return the content of the file. Unknown values are left out."""
        dumped = json.loads(self.model_dump_json(exclude_none=True))
        return json.dumps(dumped, indent=1, ensure_ascii=False)


def slug(text: str) -> str:
    """Convert a text for use in a file name, with lower-case letters, digits, dots and dashes."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "unknown"


def slug_of_place(machine: Machine, runtime: str) -> str:
    """Return the name of the folder for results on a machine. It contains the runtime, except for
    `native`, since figures of different runtimes are not comparable."""
    memory = "" if machine.memory_gib is None else f"{machine.memory_gib:.0f}-gib"
    parts = [
        NOISE_WORDS.sub(" ", machine.cpu_model),
        machine.cpu_numbers,
        f"{machine.cores}-cores" if machine.cores else "",
        machine.quota,
        memory,
        "" if runtime == "native" else runtime,
    ]
    return slug(" ".join(parts))


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a result."""
    return EngineResult.model_json_schema(schema_generator=SchemaWithoutTitles)


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2, ensure_ascii=False))
