"""The database in MySQL: campaigns, and their ads, which may move to other campaigns."""

from __future__ import annotations

from collections.abc import Sequence

from loadgen.config import Config
from loadgen.mysql import Database, Insert, Seed

from racetrack.workloads.ads.load.moves import Move
from racetrack.workloads.ads.load.sequence import Ids
from racetrack.workloads.ads.load.settings import AdsSettings
from racetrack.workloads.ads.load.tracers import Reserved

CAMPAIGNS = """CREATE TABLE IF NOT EXISTS campaigns (
    campaign_id CHAR(36) NOT NULL PRIMARY KEY)"""
ADS = """CREATE TABLE IF NOT EXISTS ads (
    ad_id CHAR(36) NOT NULL PRIMARY KEY,
    campaign_id CHAR(36) NOT NULL)"""


class AdsDatabase(Database):
    """See `loadgen.mysql.Database`."""

    create = (CAMPAIGNS, ADS)

    def __init__(self, config: Config, settings: AdsSettings) -> None:
        super().__init__(config)
        self._settings = settings

    def seeds(self) -> Sequence[Seed]:
        campaigns, ads = seeded(self._settings)
        return Seed(campaigns, "ADS_CAMPAIGNS", self._settings.partitions), Seed(ads)

    def move(self, moves: Sequence[Move]) -> None:
        """Move ads in one transaction. Repeating this is harmless."""
        with self.transaction() as cursor:
            for ad, campaign in moves:
                cursor.execute("UPDATE ads SET campaign_id = %s WHERE ad_id = %s", (campaign, ad))


def seeded(settings: AdsSettings) -> tuple[Insert, Insert]:
    """Return the rows of the tables `campaigns` and `ads`, including reserved ones."""
    ids, per_campaign = Ids.of(settings), settings.ads_per_campaign
    reserved = Reserved.of(settings.partitions)
    ads = [(ad, ids.campaigns[n // per_campaign]) for n, ad in enumerate(ids.ads)]
    campaigns = [(campaign,) for campaign in (*ids.campaigns, *reserved.campaigns)]
    return (
        Insert("campaigns", ("campaign_id",), campaigns),
        Insert("ads", ("ad_id", "campaign_id"), [*ads, *zip(reserved.ads, reserved.campaigns)]),
    )
