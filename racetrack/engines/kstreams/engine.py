"""Kafka Streams: a program that keeps the views from when it starts; each view, progress too, is an
upsert topic, which is what users of Kafka Streams read."""

from racetrack.clock import now_ms
from racetrack.config import Settings
from racetrack.engines.kstreams.settings import EXACTLY_ONCE, KafkaStreamsSettings
from racetrack.engines.shared.upsert import totals
from racetrack.engines.shared.upsert.engine import UpsertEngine

ON_TRANSACTIONS = (
    "KSTREAMS_GUARANTEE=exactly_once_v2: Kafka says when a row was written, not when its"
    " transaction was committed. So rows count from when the harness read them, up to"
    f" {totals.EVERY_S} s later."
)
ON_CHANGELOGS = (
    "KSTREAMS_CHANGELOG=off: Kafka Streams kept no copy of its state. As it is delivered it does."
)


class KafkaStreams(UpsertEngine):
    """See `racetrack.engines.contract.Engine`."""

    name = "kstreams"
    title = "Kafka Streams"
    order = 4
    needs = ("registry", "debezium")
    services = ("kstreams",)
    script_ending = ".kstreams.java"
    version_part = "kafka-streams"

    def readable_ms(self, settings: Settings, at_ms: int) -> int:
        """At once; or, within a transaction, by when it has been read at the latest."""
        is_transaction = KafkaStreamsSettings.of(settings).kstreams_guarantee == EXACTLY_ONCE
        return now_ms() if is_transaction else at_ms

    def clock_slack_ms(self, settings: Settings) -> int:
        """Its window moves by whole seconds, at a tick each 200 ms."""
        return 2_000 + 4 * KafkaStreamsSettings.of(settings).kstreams_commit_ms

    def guarantee(self, settings: Settings) -> str:
        """Return the guarantee of the setting."""
        is_exact = KafkaStreamsSettings.of(settings).kstreams_guarantee == EXACTLY_ONCE
        return "exactly once" if is_exact else "at least once"

    def caveats(self, settings: Settings) -> list[str]:
        """Report settings that make results incomparable with the defaults, or harder to
        measure."""
        own = KafkaStreamsSettings.of(settings)
        return [
            *([ON_TRANSACTIONS] if own.kstreams_guarantee == EXACTLY_ONCE else []),
            *([ON_CHANGELOGS] if own.kstreams_changelog == "off" else []),
        ]


ENGINE = KafkaStreams()
