"""Pathway: a program maintains the views from its start. All views, including the progress views,
are upsert topics."""

from racetrack.config import Settings
from racetrack.engines.pathway.settings import PathwaySettings
from racetrack.engines.shared.upsert.engine import UpsertEngine
from racetrack.results.classes import Classes
from racetrack.stack.contract import Stack

NOT_KEPT = (
    "Pathway ran without its persistence (pw.persistence), so a killed one reads all input again."
)
MERGES = (
    "After each minibatch Pathway merges the rows that it keeps, in the time that is left: with a"
    " long history it uses its core at any rate, and its costs below saturation include that."
)


class Pathway(UpsertEngine):
    """See `racetrack.engines.contract.Engine`."""

    name = "pathway"
    title = "Pathway"
    order = 6
    needs = ("registry", "debezium")
    runtimes = ("native",)
    services = ("pathway",)
    kafka_elsewhere = True
    script_ending = ".pathway.py"
    sink_format = "JSON with Pathway's differences"
    version_part = "pathway"

    def clock_slack_ms(self, settings: Settings) -> int:
        """Return two seconds, plus two steps of the clock and of the inputs."""
        own = PathwaySettings.of(settings)
        return 2_000 + 2 * (own.pathway_clock_ms + own.pathway_autocommit_ms)

    def classes(self, settings: Settings) -> Classes:
        """Return that nothing survives a kill: the program neither persists its state nor commits
        its positions. On the shop, a function of the program keeps the last views of a profile."""
        return Classes(
            results="published to Kafka",
            after_a_kill="reads all input again",
            work="as events arrive",
            views="programmed" if settings.workload == "shop" else "declarative",
            changes="follows changes",
        )

    def caveats(self, settings: Settings) -> list[str]:
        """Report what a killed Pathway loses, and what CPU use below saturation says. On ads, only
        counts are kept."""
        return [NOT_KEPT] if settings.workload == "ads" else [NOT_KEPT, MERGES]

    def usage_hints(self, stack: Stack) -> list[str]:
        """Return how to read a view, and where the program's source is."""
        read, _ = super().usage_hints(stack)
        return [read, f"Source of the views: {self.script(stack.settings)}"]


ENGINE = Pathway()
