"""Settings of the workload `shop`; `.env` describes them."""

from racetrack.config import Count, Settings


class ShopSettings(Settings):
    """Settings of the workload shop."""

    shop_users: Count
    shop_items: Count
