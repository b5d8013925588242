"""Rendering of pageviews if users and pages are not equally popular (SHOP_KEY_SKEW)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loadgen.popularity import Popularity
from loadgen.sequence import mix32

from racetrack.workloads.shop.load.render import Renderer, Share
from racetrack.workloads.shop.load.sequence import CHANNELS

_MASK, _HALF_MASK = 0xFFFFFFFF, 0x7FFFFFFF


class SkewedRenderer(Renderer):
    """See `Renderer`. `items` and `users` are the popularity of products and of profiles. `viewers`
    has, for each partition, the popularity of its users as viewers."""

    def __init__(
        self,
        *every: Any,
        items: Popularity,
        users: Popularity,
        viewers: Sequence[Popularity],
    ) -> None:
        super().__init__(*every)
        self._viewers = viewers
        channels, ffi = len(CHANNELS), self._ffi
        first_profile = self._shop.last_item * channels
        # One alias table, from which a random number chooses a (page, channel) pair: first the
        # pairs of products, then those of profiles. Thresholds have 31 bits; `others` contains the
        # numbers of pairs.
        thresholds = [(t + 1) >> 1 for popularity in (items, users) for t in popularity.thresholds]
        firsts = [0] * items.count + [first_profile] * users.count
        others = [*items.others, *users.others]
        self._thresholds = ffi.new("uint32_t[]", [t for t in thresholds for _ in CHANNELS])
        self._others = ffi.new(
            "int32_t[]",
            [
                first + page * channels + channel
                for first, page in zip(firsts, others)
                for channel in range(channels)
            ],
        )

    def share(self, partition: int) -> Share:
        viewers, new = self._viewers[partition], self._ffi.new
        tables = {
            "thresholds": new("uint32_t[]", viewers.thresholds),
            "others": new("int32_t[]", viewers.others),
        }
        return super().share(partition)._replace(**tables)

    def events(self, share: Share, first: int, count: int, due_ms: int) -> None:
        """Append pageviews. The computation is the same as in `pageview` of sequence.py."""
        key1, key2 = share.stream.keys(first)
        users, stands, others = share.users, share.thresholds, share.others
        user_count, channels = len(users), len(CHANNELS)
        page_stands, page_others = self._thresholds, self._others
        products = self._shop.items * channels
        page_count = (products, self._shop.users * channels)
        page_base = (0, self._shop.last_item * channels)
        self._set_stamp(due_ms)
        at = self._at
        for n in range(first, first + count):
            who, what = mix32((n + key1) & _MASK), mix32((n + key2) & _MASK)
            whole = who * user_count
            user = whole >> 32
            if whole & _MASK >= stands[user]:
                user = others[user]
            kind = what >> 31
            whole = (what & _HALF_MASK) * page_count[kind]
            page = whole >> 31
            entry = products + page if kind else page
            if whole & _HALF_MASK >= page_stands[entry]:
                page = page_others[entry]
            else:
                page += page_base[kind]
            at = self._put(at, users[user], page)
        self._at = at
