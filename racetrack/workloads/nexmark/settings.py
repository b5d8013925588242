"""Settings of the workload `nexmark`; the `.env` in this folder describes them."""

from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from racetrack.config import Settings

# The queries of nexmark/nexmark that engines run here. docs/workloads.md explains the others.
QUERIES = tuple(f"q{n}" for n in (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 18, 19, 20, 22))
MAX_DELAY_MS = 60_000
# Tracer events show how far an engine has got, so there are always some.
TRACER_EVENTS_PER_S = 80


def _queries(text: str) -> str:
    """Return the names of queries in their order, each once."""
    given = {name.strip() for name in text.split(",")}
    if unknown := sorted(given - {*QUERIES}):
        raise ValueError(f"there is no query {', '.join(unknown)!r}, but {', '.join(QUERIES)}")
    return ",".join(name for name in QUERIES if name in given)


class NexmarkSettings(Settings):
    """Settings of the workload nexmark."""

    nexmark_queries: Annotated[str, AfterValidator(_queries)]
    nexmark_watermark_delay_ms: Annotated[int, Field(ge=0, le=MAX_DELAY_MS)]

    @field_validator("tracer_events_per_second")
    @classmethod
    def _some_tracer_events(cls, per_s: int, info: ValidationInfo) -> int:
        return per_s or (TRACER_EVENTS_PER_S if info.data.get("workload") == "nexmark" else 0)
