"""Spark Structured Streaming: a program maintains the views from its start. All views, including
the progress views, are upsert topics, which are written once per micro-batch."""

from collections.abc import Sequence

from racetrack.config import Settings
from racetrack.engines.shared.upsert.engine import UpsertEngine
from racetrack.engines.spark.elsewhere import ELSEWHERE
from racetrack.engines.spark.settings import SparkSettings
from racetrack.results.classes import Classes
from racetrack.stack.contract import Stack
from racetrack.workloads.contract import find_workload

# Views that the program lacks; docs/engines.md explains why.
NOT_MADE = {
    "top_viewed_items",
    "top_converting_items",
    "profile_views",
    "profile_views_enriched",
    "profile_views_per_minute_last_10",
}


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

    def classes(self, settings: Settings) -> Classes:
        """Return that Spark resumes from its checkpoints where the program finds them again: not in
        containers, where they are in memory, and not in pods, which have no folder in common."""
        anew = SparkSettings.of(settings).spark_after_a_kill == "anew"
        is_lost = anew or settings.runtime in ("compose", "kubernetes")
        return Classes(
            results="published to Kafka",
            after_a_kill="reads all input again" if is_lost else "resumes",
            work="as events arrive",
            views="programmed" if settings.workload == "ads" else "declarative",
            changes="follows changes",
        )

    def remarks(self, stack: Stack) -> list[str]:
        """If the user provides a cluster, return which folder is used, and which folders earlier
        runs may have left."""
        return ELSEWHERE.remarks(stack.settings) if self.runs_elsewhere(stack.settings) else []

    def absent_views(self, settings: Settings) -> Sequence[str]:
        """Return the views that the program lacks."""
        views = [view.name for view in find_workload(settings.workload).views]
        return [name for name in views if name in NOT_MADE]


ENGINE = Spark()
