"""The shop's topics beside that of the pageviews."""

from __future__ import annotations

from loadgen.sequence import Stream, pick
from loadgen.workload import Topic

from racetrack.workloads.shop.load.settings import ShopSettings

FLAGGED_TOPIC = "dd_flagged_profiles"
# Where a demo may send its high-value users. It is there beforehand, so that reading it back can
# begin before anything has been written to it.
SINK_TOPIC = "high-value-users-sink"


def topics(settings: ShopSettings) -> list[Topic]:
    """Both of them; the first holds the ids of the flagged users."""
    users = flagged_profiles(settings.seed, settings.users, settings.flagged_profiles)
    return [Topic(FLAGGED_TOPIC, [b"%d" % user for user in users]), Topic(SINK_TOPIC)]


def flagged_profiles(seed: int, users: int, count: int) -> list[int]:
    """`count` distinct user ids."""
    stream = Stream(seed, "flagged profiles")
    ids = list(range(1, users + 1))
    for i in range(count):
        j = i + pick(stream.draw(i)[0], users - i)
        ids[i], ids[j] = ids[j], ids[i]
    return ids[:count]
