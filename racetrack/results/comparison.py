"""Model of `comparison.json`: the plan of a comparison, and the windows measured so far."""

from typing import Literal

from pydantic import Field

from racetrack.results.repeats import RepeatedRuns

FILE = "comparison.json"
# Caveat of results from `--quick`.
QUICK = (
    "Quick: windows are short and begin soon after the start, so an engine that warms up slowly"
    " costs more in them, and gets less far, than without --quick."
)


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

    @property
    def label(self) -> str:
        """End of the folder's name."""
        return "compare"

    @property
    def run_label(self) -> str:
        """End of the names of the runs' folders."""
        return "compared"
