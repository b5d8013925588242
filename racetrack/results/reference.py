"""The results published in 2022, as data: beside one's own, never among them."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, Field

from racetrack import plugins


class PublishedResult(BaseModel):
    """One run whose whole output was published; CPU in percent of a core, memory in GiB."""

    model_config = ConfigDict(extra="allow")  # its tag and samples stand in report.json too

    engine: str
    pageviews_per_s: int
    cpu_mean_pct: float
    rss_max_gib: float
    broker_cpu_mean_pct: float


class ArticleResult(BaseModel):
    """A cell of the article's table: mean CPU in percent of a core, largest memory in GiB, and the
    settings that were the engine's own at that rate."""

    engine: str
    pageviews_per_s: int
    cpu_mean_pct: float
    rss_max_gib: float
    settings: Mapping[str, str] = Field(default_factory=dict)
    note: str = ""


class Article(BaseModel):
    """The published experiment: how each run was made, under the names in `.env`, and its table."""

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
        """Those that it tells of."""
        return tuple(dict.fromkeys(result.engine for result in self.results))


class Published(BaseModel):
    """What `racetrack/engines/reference_2022.json` holds: where it stands, notes, and results."""

    title: str
    machine: str
    url: str
    where: str
    notes: tuple[str, ...]
    results: tuple[PublishedResult, ...]
    article: Article


def published() -> Published:
    """The results of 2022."""
    return Published.model_validate_json(plugins.PUBLISHED_2022.read_text(encoding="utf-8"))
