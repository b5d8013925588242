"""Kafka Streams: a program maintains the views from its start. All views, including the progress
views, are upsert topics, which is how users of Kafka Streams read results."""

from racetrack.clock import now_ms
from racetrack.config import Settings
from racetrack.engines.kstreams.settings import EXACTLY_ONCE, KafkaStreamsSettings
from racetrack.engines.shared.upsert import totals
from racetrack.engines.shared.upsert.engine import UpsertEngine
from racetrack.errors import UsageError
from racetrack.results.classes import AfterAKill, Classes
from racetrack.stack.contract import Stack

ON_TRANSACTIONS = (
    "KSTREAMS_GUARANTEE=exactly_once_v2: Kafka reports when a row was written, but not when its"
    " transaction was committed. So rows count from when the harness read them, which is up to"
    f" {totals.EVERY_S} s later."
)
ON_CHANGELOGS = (
    "KSTREAMS_CHANGELOG=off: Kafka Streams did not back up its state in Kafka, as it does by"
    " default."
)


class KafkaStreams(UpsertEngine):
    """See `racetrack.engines.contract.Engine`."""

    name = "kstreams"
    title = "Kafka Streams"
    order = 4
    needs = ("registry", "debezium")
    runtimes = ("native", "compose", "kubernetes")
    scalable_on = ("kubernetes",)
    services = ("kstreams",)
    kafka_elsewhere = True
    script_ending = ".kstreams.java"
    sink_format = "JSON"
    version_part = "kafka-streams"

    def check(self, stack: Stack) -> None:
        """Check that the program can restore its state, after a kill and in other replicas.

        Raises:
            UsageError: a setting does not allow that.
        """
        own = KafkaStreamsSettings.of(stack.settings)
        if own.kstreams_changelog == "off" and own.kstreams_after_a_kill == "resume":
            raise UsageError(
                "KSTREAMS_CHANGELOG=off: after a kill, Kafka Streams would continue without the"
                " state that it had. Set KSTREAMS_AFTER_A_KILL=anew too, or KSTREAMS_CHANGELOG=on."
            )
        if own.engine_replicas > 1 and own.kstreams_after_a_kill == "anew":
            raise UsageError(
                f"ENGINE_REPLICAS={own.engine_replicas} is not possible with Kafka Streams'"
                " KSTREAMS_AFTER_A_KILL=anew: each replica would read all input under an"
                " application id of its own. Set it to resume."
            )

    def readable_ms(self, settings: Settings, at_ms: int) -> int:
        """Return `at_ms`; if the engine uses transactions, return the current time, since a row can
        be read only after its transaction was committed, and the time of the commit is unknown."""
        is_transaction = KafkaStreamsSettings.of(settings).kstreams_guarantee == EXACTLY_ONCE
        return now_ms() if is_transaction else at_ms

    def clock_slack_ms(self, settings: Settings) -> int:
        """Return two seconds plus the time of four commits: the time window moves in steps of one
        second, and views show a step only after some commits."""
        return 2_000 + 4 * KafkaStreamsSettings.of(settings).kstreams_commit_ms

    def classes(self, settings: Settings) -> Classes:
        """Return what survives a kill by KSTREAMS_AFTER_A_KILL and KSTREAMS_GUARANTEE."""
        return Classes(
            results="published to Kafka",
            after_a_kill=_after_a_kill(KafkaStreamsSettings.of(settings)),
            work="as events arrive",
            views="programmed",
            changes="follows changes",
        )

    def caveats(self, settings: Settings) -> list[str]:
        """Report settings that make results incomparable with the defaults, or harder to
        measure."""
        own = KafkaStreamsSettings.of(settings)
        return [
            *([ON_TRANSACTIONS] if own.kstreams_guarantee == EXACTLY_ONCE else []),
            *([ON_CHANGELOGS] if own.kstreams_changelog == "off" else []),
        ]


def _after_a_kill(own: KafkaStreamsSettings) -> AfterAKill:
    if own.kstreams_after_a_kill == "anew":
        return "reads all input again"
    if own.kstreams_guarantee == EXACTLY_ONCE:
        return "resumes"
    return "resumes, counts some events twice"


ENGINE = KafkaStreams()
