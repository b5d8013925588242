"""Models of `comparison.json` and `scale.json`: plans that repeat runs on fresh stacks, and the
windows measured in these runs."""

from typing import ClassVar, Literal

from pydantic import Field

from racetrack.results.base import StrictModel
from racetrack.results.run import Machine, Window, is_void

COMPARISON_FILE, SCALE_FILE = "comparison.json", "scale.json"
UNKNOWN_RUNTIME = "unknown runtime"
# Caveat of results from `--quick`.
QUICK = (
    "Quick: measuring began soon after the start, so an engine that warms up slowly costs more, and"
    " gets less far, than in a comparison without --quick."
)


def side_label(engine: str, replicas: int) -> str:
    """Return an engine with its number of replicas, if it has several: `flink × 4`."""
    return f"{engine} × {replicas}" if replicas > 1 else engine


class PlannedRun(StrictModel):
    """A planned run on a fresh stack, which measures all rates and saturation."""

    engine: str
    repeat: int
    replicas: int = Field(default=1, description="Replicas of the engine (`ENGINE_REPLICAS`).")

    def __str__(self) -> str:
        return side_label(self.engine, self.replicas)


class Piece(PlannedRun):
    """Result of one window of a run, at a rate or at saturation."""

    pageviews_per_s: int | None = Field(description="Requested rate; null at saturation.")
    tag: str = Field(description="Name of the run folder, next to the folder of the plan.")
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
    remark: str = Field(default="", description="Reason for a lower bound or a verdict.")

    @property
    def load(self) -> str:
        """Requested rate as text, or `saturation`."""
        return "saturation" if self.pageviews_per_s is None else f"{self.pageviews_per_s:,}/s"

    def is_of(self, run: PlannedRun) -> bool:
        """Return whether the window belongs to this planned run."""
        mine = (self.engine, self.replicas, self.repeat)
        return mine == (run.engine, run.replicas, run.repeat)


class RepeatedRuns(StrictModel):
    """A plan of repeated runs, and the windows measured so far. `settings` are the settings of each
    engine that override those in `.env`."""

    rates: tuple[int, ...] = Field(default=(), description="Rates that each run measures.")
    repeats: int
    is_quick: bool = False
    seed: int = Field(description="Seed of the random order of runs and rates.")
    settings: dict[str, dict[str, str]] = Field(default_factory=dict)
    caveats: dict[str, tuple[str, ...]] = Field(
        default_factory=dict, description="Caveats by engine."
    )
    runtime: str = UNKNOWN_RUNTIME
    machine: Machine = Field(default_factory=Machine)
    workload: str = ""
    order: tuple[PlannedRun, ...] = Field(default=(), description="Planned runs in order.")
    pieces: tuple[Piece, ...] = ()
    minutes: float = Field(default=0.0, description="Time spent so far.")

    run_label: ClassVar[str]  # end of the names of the runs' folders

    @property
    def label(self) -> str:
        """End of the folder's name."""
        raise NotImplementedError

    @property
    def file(self) -> str:
        """Name of the file with this record."""
        return f"{type(self).model_fields['kind'].default}.json"

    def overrides(self, run: PlannedRun) -> dict[str, str]:
        """Return the settings of a run that override those in `.env`."""
        return {**self.settings[run.engine], "ENGINE_REPLICAS": str(run.replicas)}

    def missing(self, run: PlannedRun) -> list[int | None]:
        """Return which windows of a run have not been measured yet or were void: their rates, or
        None for saturation."""
        done = {
            piece.pageviews_per_s
            for piece in self.pieces
            if piece.is_of(run) and not is_void(piece.outcome)
        }
        return [rate for rate in (*self.rates, None) if rate not in done]

    def keep(self, piece: Piece) -> None:
        """Add a piece. It replaces an earlier void piece of the same window."""
        others = [
            one
            for one in self.pieces
            if not (one.is_of(piece) and one.pageviews_per_s == piece.pageviews_per_s)
        ]
        self.pieces = (*others, piece)


class ComparisonRecord(RepeatedRuns):
    """A comparison. `settings` include the heap of each engine. `rates` are empty before probes
    find them."""

    engines: tuple[str, ...]
    reads_per_s: int = Field(default=0, description="Reads by a client per second; 0: none.")
    heap_rule: str = Field(default="", description="Text on how heaps were sized.")
    probed_per_s: dict[str, float] = Field(
        default_factory=dict,
        description="Throughput of each engine in a short probe, from which rates are chosen.",
    )
    schema_version: Literal[1] = 1
    kind: Literal["comparison"] = "comparison"

    run_label = "compared"

    @property
    def label(self) -> str:
        """End of the folder's name."""
        return "compare"


class ScaleRecord(RepeatedRuns):
    """Capacity of an engine by its number of replicas. `rates` contain the rate to hold, if one was
    given."""

    engine: str
    replicas: tuple[int, ...] = Field(description="Numbers of replicas, in rising order.")
    partitions: int = Field(description="Partitions of the input, the same in all runs.")
    schema_version: Literal[1] = 1
    kind: Literal["scale"] = "scale"
    run_label = "scaled"

    @property
    def label(self) -> str:
        """End of the folder's name."""
        return f"{self.engine}_scale"

    @property
    def hold_per_s(self) -> int | None:
        """Rate to hold, in pageviews per second; None if none was given."""
        return next(iter(self.rates), None)
