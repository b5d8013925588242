"""Models of `sweep.json`, and of the experiment of 2022, next to whose results
`./race sweep --as-published` shows its own."""

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, Field

from racetrack import plugins
from racetrack.results.base import StrictModel


class SweepRun(StrictModel):
    """A run of the plan. Once it has run, `tag` is the name of its run folder, which is next to the
    folder of the sweep."""

    engine: str
    pageviews_per_s: int
    repeat: int
    value: str | None = None
    settings: dict[str, str] = Field(
        default_factory=dict, description="Settings of this run only, named as in `.env`."
    )
    tag: str | None = None
    outcome: str | None = None


class Sweep(StrictModel):
    """A plan of runs and its progress. If the sweep varies a setting, `vary` is its name in `.env`,
    and `value` of each run is the setting's value in that run."""

    engines: tuple[str, ...] = ()
    rates: tuple[int, ...] = ()
    load: str | None = Field(
        default=None,
        description="Load profile of each run, in the syntax of `--load`; `rates` is its mean.",
    )
    repeat: int = 1
    wait_s: float = 0.0
    samples: int = 1
    delay_s: float = 1.0
    decide_within_s: float = 0.0
    verify: bool = Field(
        default=False, description="Whether views are compared with their sources."
    )
    faults: tuple[str, ...] = Field(
        default=(), description="Faults of each run, in the syntax of `--fault`."
    )
    as_published: bool = Field(
        default=False, description="Whether the sweep repeats the experiment of 2022."
    )
    settings: dict[str, str] = Field(
        default_factory=dict, description="Settings of all runs, named as in `.env`."
    )
    vary: str | None = None
    values: tuple[str, ...] = ()
    runs: tuple[SweepRun, ...] = Field(default=(), description="Runs in the order of execution.")
    schema_version: Literal[1] = 1
    kind: Literal["sweep"] = "sweep"


class ArticleResult(BaseModel):
    """An entry in the article's table of results: mean CPU in percent of a core, largest memory in
    GiB, and the engine's settings at that rate."""

    engine: str
    pageviews_per_s: int
    cpu_mean_pct: float
    rss_max_gib: float
    settings: Mapping[str, str] = Field(default_factory=dict)
    note: str = ""


class Article(BaseModel):
    """The article: its settings, named as in `.env`, and its table."""

    title: str
    machine: str
    wait_s: float
    samples: int
    delay_s: float
    settings: Mapping[str, str]
    notes: tuple[str, ...]
    results: tuple[ArticleResult, ...]

    @property
    def engines(self) -> tuple[str, ...]:
        """Engines in the article's table."""
        return tuple(dict.fromkeys(result.engine for result in self.results))


def article() -> Article:
    """Read the article's table."""
    return Article.model_validate_json(plugins.PUBLISHED_2022.read_text(encoding="utf-8"))
