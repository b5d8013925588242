"""Tests that a seed determines the moves of ads, and that each changes an ad's campaign."""

from collections.abc import Sequence

from loadgen.clock import NS_PER_S
from loadgen.schedule import Schedule
from racetrack.workloads.ads.load.database import seeded
from racetrack.workloads.ads.load.moves import Move, Moves
from racetrack.workloads.ads.load.settings import AdsSettings
from racetrack.workloads.ads.load.tracers import Reserved
from racetrack.workloads.ads.tests.load.ads_settings import load

SETTINGS = load(ADS_CAMPAIGNS="3", ADS_PER_CAMPAIGN="2")


class Database:
    """A fake database that records moves."""

    def __init__(self) -> None:
        self.moves: list[Move] = []

    def move(self, moves: Sequence[Move]) -> None:
        self.moves += moves


def moves(settings: AdsSettings = SETTINGS, start_s: int = 0, per_s: int = 2) -> Moves:
    return Moves(settings, Schedule.starting(start_s * NS_PER_S, per_s, NS_PER_S))


def test_each_move_takes_an_ad_to_another_campaign() -> None:
    _, ads = seeded(SETTINGS)
    campaign_of = {str(ad): str(campaign) for ad, campaign in ads.rows}
    campaigns = {*campaign_of.values()} - {*Reserved.of(SETTINGS.partitions).campaigns}
    source, moved = moves(), set()
    for n in range(100):
        move = source.make(n, 0)
        assert move
        assert move.campaign in campaigns - {campaign_of[move.ad]}
        campaign_of[move.ad] = move.campaign
        moved.add(move.ad)
    reserved = Reserved.of(SETTINGS.partitions).ads
    assert moved == campaign_of.keys() - {*reserved}


def test_a_seed_determines_them() -> None:
    def drawn(settings: AdsSettings) -> list[Move | None]:
        source = moves(settings)
        return [source.make(n, 0) for n in range(20)]

    settings = [load(LOADGEN_SEED=seed, ADS_CAMPAIGNS="3", ADS_PER_CAMPAIGN="2") for seed in "12"]
    assert drawn(settings[0]) == drawn(settings[0])
    assert drawn(settings[0])[:5] != drawn(settings[1])[:5]


def test_the_first_one_is_after_a_whole_window() -> None:
    """The first whole window after 13 s is that from 20 s to 30 s. What is not moved is not due."""
    source = moves(start_s=13)
    assert list(source.due(30 * NS_PER_S - 1)) == []
    assert source.counts(30 * NS_PER_S - 1)["due"] == 0
    orders = list(source.due(32 * NS_PER_S))
    assert [order.due_ns / NS_PER_S for order in orders] == [30, 30.5, 31, 31.5, 32]
    assert source.counts(32 * NS_PER_S)["due"] == len(orders)
    database = Database()
    assert source.write(database, [order.work for order in orders]) == 0
    assert database.moves == [order.work for order in orders]
