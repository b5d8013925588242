"""The results published in 2022, as data: beside one's own, never among them."""

from importlib.resources import files

from pydantic import BaseModel, ConfigDict


class PublishedResult(BaseModel):
    """One run of the published experiment; CPU in percent of a core, memory in GiB."""

    model_config = ConfigDict(extra="allow")  # its tag and samples stand in report.json too

    engine: str
    pageviews_per_s: int
    cpu_mean_pct: float
    rss_max_gib: float
    broker_cpu_mean_pct: float


class Published(BaseModel):
    """What `published_2022.json` holds: where it stands, notes, and results."""

    title: str
    machine: str
    url: str
    where: str
    notes: tuple[str, ...]
    results: tuple[PublishedResult, ...]


def published() -> Published:
    """The results of 2022."""
    text = files("racetrack.report").joinpath("published_2022.json").read_text(encoding="utf-8")
    return Published.model_validate_json(text)
