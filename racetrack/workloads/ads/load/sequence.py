"""Users, pages, campaigns, ads and events, computed from the seed."""

from __future__ import annotations

from typing import NamedTuple
from uuid import UUID

from loadgen.popularity import Popularity
from loadgen.sequence import Stream, mix32, pick

from racetrack.workloads.ads.load.settings import AdsSettings

PAGES = 100
AD_TYPES = ("banner", "modal", "sponsored-search", "mail", "mobile")
EVENT_TYPES = ("view", "click", "purchase")
# Number of pairs of ad type and event type. Pairs are numbered in order of the ad type.
KINDS = len(AD_TYPES) * len(EVENT_TYPES)
# An event's time differs from its due time by up to SKEW_MS in either direction. One event in
# LATE_ONE_IN has a time that is up to LATE_MS earlier still.
SKEW_MS, LATE_ONE_IN, LATE_MS = 50, 100_000, 60_000
_MASK = 0xFFFFFFFF
_LATE_BELOW = 2**32 // LATE_ONE_IN


class Ids(NamedTuple):
    """UUIDs of users, pages, campaigns and ads. With k = ads / campaigns, the ads of campaign n
    have the indices n * k to (n + 1) * k - 1."""

    users: list[str]
    pages: list[str]
    campaigns: list[str]
    ads: list[str]

    @classmethod
    def of(cls, settings: AdsSettings) -> Ids:
        seed, campaigns = settings.seed, settings.campaigns
        return cls(
            uuids(seed, "user ids", settings.users),
            uuids(seed, "page ids", PAGES),
            uuids(seed, "campaign ids", campaigns),
            uuids(seed, "ad ids", campaigns * settings.ads_per_campaign),
        )


class AdEvent(NamedTuple):
    """An ad event: a user viewed or clicked an ad on a page, or bought the product."""

    user_id: str
    page_id: str
    ad_id: str
    ad_type: str
    event_type: str


def uuids(seed: int, purpose: str, count: int) -> list[str]:
    """Return `count` random UUIDs (version 4)."""
    stream, ids = Stream(seed, purpose), []
    for n in range(count):
        (a, b), (c, d) = stream.draw(2 * n), stream.draw(2 * n + 1)
        ids.append(str(UUID(int=a << 96 | b << 64 | c << 32 | d, version=4)))
    return ids


def ad_and_kind(random32: int, ads: int) -> tuple[int, int]:
    """Return the number of a random ad, and the number of a random pair of ad type and event type.
    One random number is enough for both: the remainder after choosing the ad is random, too."""
    whole = random32 * ads
    return whole >> 32, pick(whole & _MASK, KINDS)


def skew_ms(who: int, what: int, heads: int, ads: int) -> int:
    """Return the difference of an event's time from its due time, -60,049 to 49 ms. It is computed
    from the remainders of the event's two random numbers."""
    left = (((what * ads) & _MASK) * KINDS) & _MASK
    skew = pick(left, 2 * SKEW_MS) - SKEW_MS
    if (who * heads) & _MASK < _LATE_BELOW:
        skew -= pick((left * 2 * SKEW_MS) & _MASK, LATE_MS)
    return skew


def ad_event(stream: Stream, n: int, ids: Ids, popularity: Popularity | None = None) -> AdEvent:
    """Return event n (0-based) of a partition. `popularity` is the popularity of the ads; None: all
    ads are equally popular. `Renderer` computes the same events in bulk."""
    who, what = stream.draw(n)
    user, page = divmod(pick(who, len(ids.users) * len(ids.pages)), len(ids.pages))
    ad, kind = ad_and_kind(what, len(ids.ads))
    if popularity:
        # This needs a third random number, because the remainders of the first two already
        # determine types and times.
        ad = popularity.settle(ad, mix32(who ^ what))
    ad_type, event_type = divmod(kind, len(EVENT_TYPES))
    return AdEvent(
        ids.users[user],
        ids.pages[page],
        ids.ads[ad],
        AD_TYPES[ad_type],
        EVENT_TYPES[event_type],
    )
