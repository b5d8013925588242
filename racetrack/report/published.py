"""The results published in 2022, as data: beside one's own, never among them."""

from pydantic import BaseModel, ConfigDict

from racetrack import plugins


class PublishedResult(BaseModel):
    """One run of the published experiment; CPU in percent of a core, memory in GiB."""

    model_config = ConfigDict(extra="allow")  # its tag and samples stand in report.json too

    engine: str
    pageviews_per_s: int
    cpu_mean_pct: float
    rss_max_gib: float
    broker_cpu_mean_pct: float


class Published(BaseModel):
    """What `engines/published_2022.json` holds: where it stands, notes, and results."""

    title: str
    machine: str
    url: str
    where: str
    notes: tuple[str, ...]
    results: tuple[PublishedResult, ...]


def published() -> Published:
    """The results of 2022."""
    return Published.model_validate_json(plugins.PUBLISHED_2022.read_text(encoding="utf-8"))
