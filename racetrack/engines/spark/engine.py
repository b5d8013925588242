"""Spark Structured Streaming: a program maintains the views from its start. All views, including
the progress views, are upsert topics, which are written once per micro-batch."""

from racetrack.config import Settings
from racetrack.engines.shared.upsert.engine import UpsertEngine
from racetrack.engines.spark.elsewhere import ELSEWHERE
from racetrack.engines.spark.settings import SparkSettings
from racetrack.results.classes import Classes
from racetrack.stack.contract import Stack


class Spark(UpsertEngine):
    """See `racetrack.engines.contract.Engine`."""

    name = "spark"
    title = "Spark"
    order = 5
    needs = ("registry", "debezium")
    runtimes = ("native", "compose", "kubernetes")
    scalable_on = ("kubernetes",)
    services = ("spark",)
    kafka_elsewhere = True
    script_ending = ".spark.java"
    sink_format = "JSON"
    version_part = "spark"

    def clock_slack_ms(self, settings: Settings) -> int:
        """Return three seconds plus the time between two micro-batches: the time window moves by
        whole seconds, at most once a second, and is written a little later."""
        return 3_000 + SparkSettings.of(settings).spark_trigger_ms

    def classes(self, settings: Settings) -> Classes:
        """Return that Spark resumes from its checkpoints where the program finds them again: not in
        containers, where they are in memory, and not in pods, which have no folder in common."""
        anew = SparkSettings.of(settings).spark_after_a_kill == "anew"
        is_lost = anew or settings.runtime in ("compose", "kubernetes")
        return Classes(
            results="published to Kafka",
            after_a_kill="reads all input again" if is_lost else "resumes",
            work="as events arrive",
            views="declarative" if settings.workload == "nexmark" else "programmed",
            changes="follows changes",
        )

    def remarks(self, stack: Stack) -> list[str]:
        """If the user provides a cluster, return which folder is used, and which folders earlier
        runs may have left."""
        return ELSEWHERE.remarks(stack.settings) if self.runs_elsewhere(stack.settings) else []


ENGINE = Spark()
