"""Settings of the workload `ads`; the `.env` in this folder describes them."""

from typing import Annotated

from pydantic import Field

from racetrack.config import Count, Settings, Skew, no_padding_or_at_least

MAX_USERS = 10_000
MIN_EVENT_BYTES, MAX_EVENT_BYTES = 280, 65_536


class AdsSettings(Settings):
    """Settings of the workload ads."""

    ads_campaigns: Count
    ads_per_campaign: Count
    ads_with_skew: bool
    ads_key_skew: Skew
    ads_users: Annotated[int, Field(ge=1, le=MAX_USERS)]
    ads_event_bytes: Annotated[
        int,
        Field(ge=0, le=MAX_EVENT_BYTES),
        no_padding_or_at_least(MIN_EVENT_BYTES, "an ad event"),
    ]
