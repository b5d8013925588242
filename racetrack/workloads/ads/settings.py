"""Settings of the workload `ads`; `.env` describes them."""

from racetrack.config import Count, Settings, Skew


class AdsSettings(Settings):
    """Settings of the workload ads."""

    ads_campaigns: Count
    ads_per_campaign: Count
    ads_with_skew: bool
    ads_key_skew: Skew
