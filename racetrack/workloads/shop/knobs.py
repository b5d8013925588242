"""Settings that only the shop heeds; `.env` says what they do."""

from racetrack.config import Count, Settings


class Knobs(Settings):
    """See `racetrack.config`."""

    shop_users: Count
    shop_items: Count
