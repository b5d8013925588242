"""Settings that only the shop heeds; `.env` says what they do."""

from racetrack.settings import Count, Settings


class Knobs(Settings):
    """See `racetrack.settings`."""

    shop_users: Count
    shop_items: Count
