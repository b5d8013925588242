"""Model of `scale.json`: the plan of a scaling measurement, and the windows measured so far."""

from typing import Literal

from pydantic import Field

from racetrack.results.repeats import RepeatedRuns

FILE = "scale.json"


class ScaleRecord(RepeatedRuns):
    """Capacity of an engine by its number of replicas. `rates` contain the rate to hold, if one was
    given."""

    engine: str
    replicas: tuple[int, ...] = Field(description="Numbers of replicas, in rising order.")
    partitions: int = Field(description="Partitions of the input, the same in all runs.")
    schema_version: Literal[1] = 1
    kind: Literal["scale"] = "scale"

    @property
    def label(self) -> str:
        """End of the folder's name."""
        return f"{self.engine}_scale"

    @property
    def run_label(self) -> str:
        """End of the names of the runs' folders."""
        return "scaled"

    @property
    def hold_per_s(self) -> int | None:
        """Rate to hold, in pageviews per second; None if none was given."""
        return next(iter(self.rates), None)
