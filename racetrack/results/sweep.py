"""What `sweep.json` holds, as a typed model."""

from typing import Literal

from pydantic import Field

from racetrack.results.base import StrictModel


class PlannedRun(StrictModel):
    """One run of the plan; `tag` names its folder beside the sweep's, once it has been run."""

    engine: str
    pageviews_per_s: int
    repeat: int
    value: str | None = None
    settings: dict[str, str] = Field(
        default_factory=dict, description="Of this run only, under their names in `.env`."
    )
    tag: str | None = None
    outcome: str | None = None


class Sweep(StrictModel):
    """A plan, and how far it came. `vary` names a setting of `.env`, each run's `value` is what it
    is set to."""

    engines: tuple[str, ...] = ()
    rates: tuple[int, ...] = ()
    repeat: int = 1
    wait_s: float = 0.0
    samples: int = 1
    delay_s: float = 1.0
    decide_within_s: float = 0.0
    verify: bool = Field(
        default=False, description="Whether each run compares every view with its sources."
    )
    faults: tuple[str, ...] = Field(
        default=(), description="What each run causes on purpose, as `--fault` takes it."
    )
    as_published: bool = Field(
        default=False, description="Whether it is the experiment of 2022 again, as it was."
    )
    settings: dict[str, str] = Field(
        default_factory=dict, description="Of every run, under their names in `.env`."
    )
    vary: str | None = None
    values: tuple[str, ...] = ()
    runs: tuple[PlannedRun, ...] = Field(default=(), description="In the order in which they run.")
    schema_version: Literal[1] = 1
    kind: Literal["sweep"] = "sweep"
