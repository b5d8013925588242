"""Reference results of the experiment of 2022, which reports show next to new results."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from racetrack import plugins


class PublishedResult(BaseModel):
    """A run of 2022 with published raw output; CPU in percent of a core, memory in GiB."""

    model_config = ConfigDict(extra="allow")  # tag and samples are copied to report.json

    engine: str
    pageviews_per_s: int
    cpu_mean_pct: float
    rss_max_gib: float
    broker_cpu_mean_pct: float


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


class Published(BaseModel):
    """Model of `reference_2022.json`: source, notes and results."""

    title: str
    machine: str
    url: str
    where: str
    notes: tuple[str, ...]
    results: tuple[PublishedResult, ...]
    article: Article


def published() -> Published:
    """Read the results of 2022."""
    return Published.model_validate_json(plugins.PUBLISHED_2022.read_text(encoding="utf-8"))
