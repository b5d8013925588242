"""Models of `comparison.json`: the plan of a comparison, and the windows measured so far."""

from typing import Literal

from pydantic import Field

from racetrack.results.base import StrictModel
from racetrack.results.run import Machine, Window

FILE = "comparison.json"
VOID = "Void: "


class PlannedRun(StrictModel):
    """A planned run on a fresh stack, which measures all rates and then saturation."""

    engine: str
    repeat: int


class Piece(StrictModel):
    """Result of one window of a run, at a rate or at saturation."""

    engine: str
    repeat: int
    pageviews_per_s: int | None = Field(description="Requested rate; null at saturation.")
    tag: str = Field(description="Name of the run folder, next to the folder of the comparison.")
    window: Window | None = Field(
        default=None, description="null if the run ended before the window."
    )
    outcome: str = Field(default="ok", description="`ok`, `Void: …`, or why there are no figures.")
    verdict: str = Field(default="none", description="Verdict; `none` at saturation.")
    figures: dict[str, float | None] = Field(
        default_factory=dict, description="Figures of a flat record (docs/run-folder.md)."
    )
    is_lower_bound: bool = Field(
        default=False, description="Whether the true capacity may be higher than the figure."
    )
    remark: str = Field(default="", description="Reason why the capacity is a lower bound.")

    @property
    def load(self) -> str:
        """Requested rate as text, or `saturation`."""
        return "saturation" if self.pageviews_per_s is None else f"{self.pageviews_per_s:,}/s"


class ComparisonRecord(StrictModel):
    """A comparison. `settings` are the settings of each engine, including its heap, that override
    those in `.env`."""

    engines: tuple[str, ...]
    rates: tuple[int, ...] = Field(default=(), description="Rates; empty before probes find them.")
    repeats: int
    is_quick: bool = False
    reads_per_s: int = Field(default=0, description="Reads by a client per second; 0: none.")
    seed: int = Field(description="Seed of the random order of runs and rates.")
    settings: dict[str, dict[str, str]] = Field(default_factory=dict)
    heap_rule: str = Field(default="", description="Text on how heaps were sized.")
    caveats: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="Caveats by engine."
    )
    runtime: str = "unknown runtime"
    machine: Machine = Field(default_factory=Machine)
    workload: str = ""
    order: tuple[PlannedRun, ...] = Field(default=(), description="Planned runs in order.")
    probed_per_s: dict[str, float] = Field(
        default_factory=dict,
        description="Throughput of each engine in a short probe, from which rates are chosen.",
    )
    pieces: tuple[Piece, ...] = ()
    minutes: float = Field(default=0.0, description="Time spent so far.")
    schema_version: Literal[1] = 1
    kind: Literal["comparison"] = "comparison"

    def missing(self, run: PlannedRun) -> list[int | None]:
        """Return which windows of a run have not been measured yet or were void: their rates, or
        None for saturation."""
        done = {
            piece.pageviews_per_s
            for piece in self.pieces
            if (piece.engine, piece.repeat) == (run.engine, run.repeat)
            and not piece.outcome.startswith(VOID)
        }
        return [rate for rate in (*self.rates, None) if rate not in done]
