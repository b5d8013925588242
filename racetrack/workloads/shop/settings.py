"""Settings of the workload `shop`; `.env` describes them."""

from typing import Annotated

from pydantic import AfterValidator, Field

from racetrack.config import Count, Settings, Skew

MIN_PAGEVIEW_BYTES, MAX_PAGEVIEW_BYTES = 128, 65_536


def _size(size: int) -> int:
    if 0 < size < MIN_PAGEVIEW_BYTES:
        raise ValueError(
            f"{size} bytes do not hold a pageview: 0 adds nothing, otherwise at least"
            f" {MIN_PAGEVIEW_BYTES}"
        )
    return size


class ShopSettings(Settings):
    """Settings of the workload shop."""

    shop_users: Count
    shop_items: Count
    shop_key_skew: Skew
    shop_pageview_bytes: Annotated[int, Field(ge=0, le=MAX_PAGEVIEW_BYTES), AfterValidator(_size)]
