"""Model of `experiment.json`: the resolved plan of several runs, their order, and what became of
each. It contains no figures; these are in the run folders, which are next to its folder."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

from racetrack.errors import UsageError
from racetrack.results.base import StrictModel
from racetrack.results.folder import read_record, write_record
from racetrack.results.run import is_void

EXPERIMENT_FILE = "experiment.json"


class ExperimentRun(StrictModel):
    """A planned run. If it was interrupted and resumed, each of its folders has an entry."""

    variant: str
    repeat: int
    loads: tuple[str, ...] = Field(
        default=(), description="Loads in the order in which the run measures them."
    )
    cell: int = Field(description="Place of the run in the plan, from 0.")
    tag: str | None = Field(
        default=None, description="Name of the run folder; null if it has not begun."
    )
    outcome: str | None = Field(
        default=None, description="Outcome of the run; null if it has not ended."
    )
    took_s: float = Field(default=0.0, description="Seconds it took, without void windows.")

    def __str__(self) -> str:
        at = f" at {self.loads[0]}" if len(self.loads) == 1 else ""
        return f"{self.variant}{at}, repeat {self.repeat}"

    @property
    def is_done(self) -> bool:
        """True if the run has ended and is not void."""
        return self.outcome is not None and not is_void(self.outcome)


class InputAlone(StrictModel):
    """CPU use of the broker while a client only reads the input."""

    per_s: float = Field(description="Events per second that were sent.")
    broker_cpu_pct: float = Field(description="Mean CPU use of the broker, in % of a core.")


class ExperimentRecord(StrictModel):
    """Runs according to a plan, and their progress."""

    name: str = Field(description="Name of the plan.")
    command: str = Field(default="", description="Command line.")
    seed: int = Field(description="Seed of the random order of runs and loads.")
    plan: dict[str, Any] = Field(description="The resolved plan (racetrack/plan/resolve.py).")
    scouted_per_s: dict[str, float] = Field(
        default_factory=dict,
        description="Throughput of each variant in its scout, to which shares refer.",
    )
    input_alone: tuple[InputAlone, ...] = Field(
        default=(), description="CPU use without an engine, by rate."
    )
    quiet_read_ns: float | None = Field(
        default=None,
        description="Time of a read from memory in the window in which the machine was quietest.",
    )
    runs: tuple[ExperimentRun, ...] = Field(default=(), description="Runs in order.")
    minutes: float = Field(default=0.0, description="Time spent so far.")
    schema_version: Literal[2] = 2
    kind: Literal["experiment"] = "experiment"

    @field_validator("plan")
    @classmethod
    def _has_cells(cls, plan: dict[str, Any]) -> dict[str, Any]:
        cells = plan.get("cells", [])
        for cell in cells if isinstance(cells, list) else [None]:
            if not isinstance(cell, dict) or not isinstance(cell.get("settings"), dict):
                raise ValueError("it has no list `cells` of runs with `settings`")
        return plan


def read_experiment(folder: Path) -> ExperimentRecord:
    """Read `experiment.json` of a folder.

    Raises:
        UsageError: there is none, or it can't be read.
    """
    if not (folder / EXPERIMENT_FILE).is_file():
        raise UsageError(
            f"{folder} has no {EXPERIMENT_FILE}: it is not the folder of an experiment."
        )
    return read_record(folder / EXPERIMENT_FILE, ExperimentRecord)


def write_experiment(folder: Path, record: ExperimentRecord) -> None:
    """Write `experiment.json`, atomically."""
    write_record(folder / EXPERIMENT_FILE, record)
