"""What `sweep.json` holds, as a typed model."""

from typing import Literal

from pydantic import Field

from racetrack.record_part import Part


class PlannedRun(Part):
    """One run of the plan; `tag` names its folder beside the sweep's, once it has been run."""

    engine: str
    pageviews_per_s: int
    repeat: int
    value: str | None = None
    tag: str | None = None
    outcome: str | None = None


class Sweep(Part):
    """A plan, and how far it came. `vary` names a setting of `.env`, each run's `value` is what it
    is set to."""

    engines: tuple[str, ...] = ()
    rates: tuple[int, ...] = ()
    repeat: int = 1
    wait_s: float = 0.0
    samples: int = 1
    delay_s: float = 1.0
    vary: str | None = None
    values: tuple[str, ...] = ()
    runs: tuple[PlannedRun, ...] = Field(default=(), description="In the order in which they run.")
    schema_version: Literal[1] = 1
    kind: Literal["sweep"] = "sweep"
