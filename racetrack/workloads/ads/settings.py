"""Settings of the workload `ads`; `.env` describes them."""

from racetrack.config import Count, Settings


class AdsSettings(Settings):
    """Settings of the workload ads."""

    ads_campaigns: Count
    ads_per_campaign: Count
    ads_with_skew: bool
