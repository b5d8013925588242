"""Results of the experiment of 2022, next to which `./race sweep --as-published` shows its own."""

from collections.abc import Mapping

from pydantic import BaseModel, Field

from racetrack import plugins


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
