"""Models of `comparison.json`: the plan of a comparison, and what it has measured so far."""

from typing import Literal

from pydantic import Field

from racetrack.results.base import StrictModel
from racetrack.results.run import Machine, Window

FILE = "comparison.json"
VOID = "Void: "


class PlannedRun(StrictModel):
    """A run on a fresh stack: all rates, then saturation."""

    engine: str
    repeat: int


class Piece(StrictModel):
    """A window of a run: at one rate, or at saturation."""

    engine: str
    repeat: int
    pageviews_per_s: int | None = Field(description="Rate; null: at saturation.")
    tag: str = Field(description="Folder of the run, beside that of the comparison.")
    window: Window | None = Field(default=None, description="null if the run ended before it.")
    outcome: str = Field(default="ok", description="`ok`, `Void: …`, or why there are no figures.")
    verdict: str = Field(default="none", description="Kind of verdict; none at saturation.")
    figures: dict[str, float | None] = Field(
        default_factory=dict, description="As in a flat record (docs/run-folder.md)."
    )
    is_lower_bound: bool = Field(
        default=False, description="Whether the engine goes further than the capacity found."
    )
    remark: str = Field(default="", description="Why it is a lower bound.")


class ComparisonRecord(StrictModel):
    """A comparison. `settings` are overrides of `.env`, by engine, including its heap."""

    engines: tuple[str, ...]
    rates: tuple[int, ...] = Field(default=(), description="Empty until found by the probes.")
    repeats: int
    is_quick: bool = False
    reads_per_s: int = Field(default=0, description="Reads by a client per second; 0: none.")
    seed: int = Field(description="Of the order of runs and rates.")
    settings: dict[str, dict[str, str]] = Field(default_factory=dict)
    heap_rule: str = Field(default="", description="How heaps were sized, for people.")
    caveats: dict[str, tuple[str, ...]] = Field(default_factory=dict, description="By engine.")
    runtime: str = "unknown runtime"
    machine: Machine = Field(default_factory=Machine)
    workload: str = ""
    order: tuple[PlannedRun, ...] = Field(default=(), description="Runs in order.")
    probed_per_s: dict[str, float] = Field(
        default_factory=dict, description="Capacity by a short probe, for the choice of rates."
    )
    pieces: tuple[Piece, ...] = ()
    minutes: float = Field(default=0.0, description="Time spent so far.")
    schema_version: Literal[1] = 1
    kind: Literal["comparison"] = "comparison"

    def missing(self, run: PlannedRun) -> list[int | None]:
        """Return the pieces of a run that have not been measured, or were void: its rates, and None
        for saturation."""
        done = {
            piece.pageviews_per_s
            for piece in self.pieces
            if (piece.engine, piece.repeat) == (run.engine, run.repeat)
            and not piece.outcome.startswith(VOID)
        }
        return [rate for rate in (*self.rates, None) if rate not in done]
