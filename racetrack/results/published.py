"""Models of `results/<workload>/<machine>/<engine>@<version>.json`: results of one engine on one
machine, from which the page that ranks engines is made. docs/result.schema.json is generated from
these models:

    python -m racetrack.results.published > docs/result.schema.json
"""

import json
import re
from typing import Any, Literal

from pydantic import Field

from racetrack.results.base import InfinityAsNull, Scalar, StrictModel
from racetrack.results.classes import Classes, ClassesOfRun, classes_of_run
from racetrack.results.run import Machine, SchemaWithoutTitles, broker_of

# Size limit of a file, so that files in the repository can be read and reviewed.
MOST_BYTES = 40_000
FAULTY = "with the fault"  # beginning of why a window is left out
# Words in a processor's name that do not help to identify it.
NOISE_WORDS = re.compile(r"\((r|tm)\)|\b(processor|cpu|core)\b|@.*", re.IGNORECASE)


class MeanInterval(StrictModel):
    """95 % interval of a mean over `n` runs."""

    low: float | None = Field(default=None, description="Lower end; absent if it is unknown.")
    high: float | None = Field(default=None, description="Upper end; absent if it is unknown.")
    n: int = Field(ge=1, description="Number of runs.")
    freedom: float | None = Field(
        default=None, description="Degrees of freedom of Student's t; absent: n - 1."
    )


class WindowResult(StrictModel):
    """A measured window. Keys of `figures` are described in docs/run-folder.md."""

    experiment: str = Field(description="Name of the experiment; empty for a single run.")
    repeat: int = Field(ge=1, description="Number of the repeat.")
    tag: str = Field(description="Name of the run folder.")
    window: str = Field(
        default="",
        description="Name of the window, if it is the recovery from a fault, or `search`.",
    )
    per_s: int | None = Field(
        default=None,
        description="Offered events per second; absent at saturation and for recoveries.",
    )
    share: float | None = Field(
        default=None, description="The same as a share of the engine's capacity, if given so."
    )
    verdict: str = Field(default="none", description="Verdict; `none` at saturation.")
    figures: dict[str, InfinityAsNull] = Field(
        description="Figures by key; null stands for infinity, and what was not measured is absent."
    )
    at_least: tuple[str, ...] = Field(
        default=(), description="Keys of figures whose true value may be higher."
    )
    remark: str | None = Field(
        default=None, description="What the harness remarked on the window; absent: nothing."
    )
    intervals: dict[str, MeanInterval] = Field(
        default_factory=dict,
        description="If the figures are means over several runs whose values are unknown: their"
        " intervals, by key.",
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
    memory_read_min_ns: float | None = Field(
        default=None, description="Shortest of the windows' median times of a read from memory."
    )
    memory_read_max_ns: float | None = Field(
        default=None, description="Longest of the windows' median times of a read from memory."
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

    schema_version: Literal[4] = 4
    kind: Literal["result"] = "result"
    workload: str = Field(description="Name of the workload.")
    engine: str = Field(description="Name of the engine on the command line.")
    title: str = Field(description="Name of the engine for people.")
    version: str = Field(description="Version of the engine.")
    variant: str = Field(default="", description="Name of a configuration; empty: the usual one.")
    runtime: str = Field(description="How the services ran, such as `native`.")
    broker: str | None = Field(
        default=None,
        description="Apache Kafka, Redpanda, or Kafka elsewhere; absent in earlier results.",
    )
    machine: Machine
    measured_from: str = Field(description="Date of the first run, ISO 8601.")
    measured_until: str = Field(description="Date of the last run, ISO 8601.")
    commands: tuple[str, ...] = Field(description="Commands that repeat the measurement.")
    versions: dict[str, str] = Field(description="Versions of all components.")
    settings: dict[str, Scalar] = Field(
        description="Settings that differ from the defaults in `.env`, in lower case."
    )
    classes: Classes = Field(
        default_factory=Classes, description="Classes of the engine with these settings."
    )
    caveats: tuple[str, ...] = Field(description="Warnings for comparisons with other engines.")
    windows: tuple[WindowResult, ...] = Field(
        description="Measured windows, in the order of their runs."
    )
    views: ViewCheck
    noise: NoiseRange
    left_out: tuple[str, ...] = Field(
        default=(), description="Runs and searches that were left out, each with the reason."
    )
    raw: RawData

    @property
    def classes_of_run(self) -> ClassesOfRun:
        """The known classes, with the number of views."""
        count = self.views.of_workload
        there = None if count is None else count - len(self.views.absent)
        return classes_of_run(self.classes.model_dump(), there, count)

    @property
    def file_name(self) -> str:
        """Path of the file, relative to `results/`."""
        variant = f"+{slug(self.variant)}" if self.variant else ""
        place = slug_of_place(self.machine, self.runtime, self.broker)
        name = f"{slug(self.engine)}@{slug(self.version)}{variant}.json"
        work = "/".join(map(slug, self.workload.split()))  # with its queries, if it has any
        return f"{work}/{place}/{name}"

    def as_text(self) -> str:
        """Return the content of the file. Unknown values are left out."""
        dumped = json.loads(self.model_dump_json(exclude_none=True))
        return json.dumps(dumped, indent=1, ensure_ascii=False)


def slug(text: str) -> str:
    """Convert a text for use in a file name, with lower-case letters, digits, dots and dashes."""
    return re.sub(r"[^a-z0-9.]+", "-", text.lower()).strip("-.") or "unknown"


def slug_of_place(machine: Machine, runtime: str, broker: str | None = None) -> str:
    """Return the name of the folder for results on a machine. It contains the runtime, except for
    `native`, and a broker that the runtime does not start, since figures of different runtimes and
    brokers are not comparable."""
    memory = "" if machine.memory_gib is None else f"{machine.memory_gib:.0f}-gib"
    parts = [
        NOISE_WORDS.sub(" ", machine.cpu_model),
        machine.cpu_numbers,
        f"{machine.cores}-cores" if machine.cores else "",
        machine.quota,
        memory,
        "" if runtime == "native" else runtime,
        "" if broker in (None, broker_of(runtime)) else broker,
    ]
    return slug(" ".join(parts))


def schema() -> dict[str, Any]:
    """Return the JSON Schema of a result."""
    return EngineResult.model_json_schema(schema_generator=SchemaWithoutTitles)


if __name__ == "__main__":
    print(json.dumps(schema(), indent=2, ensure_ascii=False))
