"""The shop's topics other than pageviews and CDC topics."""

from __future__ import annotations

from loadgen.sequence import Stream, pick
from loadgen.workload import Topic

from racetrack.workloads.shop.load.settings import ShopSettings

FLAGGED_TOPIC = "dd_flagged_profiles"
# Topic into which engines write high-value users. It is created at the start, because engines also
# read it, possibly before the first message is written.
SINK_TOPIC = "high-value-users-sink"


def topics(settings: ShopSettings) -> list[Topic]:
    """Return the two topics. The first contains the ids of the flagged users, the second is
    SINK_TOPIC."""
    users = flagged_profiles(settings.seed, settings.users, settings.flagged_profiles)
    return [Topic(FLAGGED_TOPIC, [b"%d" % user for user in users]), Topic(SINK_TOPIC)]


def flagged_profiles(seed: int, users: int, count: int) -> list[int]:
    """Return `count` distinct ids of users, who are flagged from the start."""
    stream = Stream(seed, "flagged profiles")
    ids = list(range(1, users + 1))
    for i in range(count):
        j = i + pick(stream.draw(i)[0], users - i)
        ids[i], ids[j] = ids[j], ids[i]
    return ids[:count]
