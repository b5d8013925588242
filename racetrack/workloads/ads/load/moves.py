"""Moves of ads to other campaigns, which make engines correct counts of earlier events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from loadgen.clock import NS_PER_S
from loadgen.schedule import Schedule
from loadgen.sequence import Stream, pick
from loadgen.source import Order, Source

from racetrack.workloads.ads.load.sequence import Ids
from racetrack.workloads.ads.load.settings import AdsSettings

WINDOW_NS = 10 * NS_PER_S


class Move(NamedTuple):
    """A move of an ad to a campaign; both are UUIDs."""

    ad: str
    campaign: str


class Moves(Source):
    """Source of moves. Each moves any ad to any other campaign. The first one is after a whole
    window, so that there are counts to correct."""

    name = "update"
    help_text = "moves of ads to other campaigns"
    optional = True

    def __init__(self, settings: AdsSettings, schedule: Schedule) -> None:
        super().__init__(schedule, settings.updates_milli_per_s)
        self._ids, self._each = Ids.of(settings), settings.ads_per_campaign
        self._stream = Stream(settings.seed, "moves")
        self._moved_to: dict[int, int] = {}  # number of an ad → number of its campaign
        start_ns = schedule.segments[0][0]
        self._first_ns = -(-start_ns // WINDOW_NS) * WINDOW_NS + WINDOW_NS
        self._left_out = 0

    def make(self, n: int, _due_ns: int) -> Move | None:
        """Return move n; None if there is no other campaign."""
        ads, campaigns = self._ids.ads, self._ids.campaigns
        if len(campaigns) == 1:
            return None
        which, how = self._stream.draw(n)
        ad = pick(which, len(ads))
        before = self._moved_to.get(ad, ad // self._each)
        self._moved_to[ad] = (before + 1 + pick(how, len(campaigns) - 1)) % len(campaigns)
        return Move(ads[ad], campaigns[self._moved_to[ad]])

    def write(self, database: Any, work: Sequence[Move | None]) -> int:
        moves = [move for move in work if move]
        database.move(moves)
        return len(work) - len(moves)

    def due(self, now_ns: int) -> Iterator[Order]:
        left_out = self.schedule.due_by(min(now_ns, self._first_ns - 1))
        if self._made < left_out:
            self._made = self._left_out = left_out
        yield from super().due(now_ns)

    def counts(self, now_ns: int) -> dict[str, int]:
        counts = super().counts(now_ns)
        return {**counts, "due": counts["due"] - self._left_out}
