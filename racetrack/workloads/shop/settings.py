"""Settings of the workload `shop`; the `.env` in this folder describes them."""

from typing import Annotated

from pydantic import Field

from racetrack.config import Count, Settings, Skew, no_padding_or_at_least

MIN_PAGEVIEW_BYTES, MAX_PAGEVIEW_BYTES = 128, 65_536


class ShopSettings(Settings):
    """Settings of the workload shop."""

    shop_users: Count
    shop_items: Count
    shop_key_skew: Skew
    shop_pageview_bytes: Annotated[
        int,
        Field(ge=0, le=MAX_PAGEVIEW_BYTES),
        no_padding_or_at_least(MIN_PAGEVIEW_BYTES, "a pageview"),
    ]
