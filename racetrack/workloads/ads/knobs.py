"""Settings that only the ads heed; `.env` says what they do."""

from racetrack.config import Count, Settings


class Knobs(Settings):
    """See `racetrack.config`."""

    ads_campaigns: Count
    ads_per_campaign: Count
    ads_with_skew: bool
