"""The views that Flink's script writes to topics."""

from engines.contract import NoSuchView
from engines.flink import script, topics
from engines.shared.upsert.views import Columns
from racetrack.settings import Settings
from racetrack.workload import find_workload

ENDING = ".flink.sql"  # of the scripts


def columns(settings: Settings, view: str) -> Columns:
    """Those of a view that the script writes to a topic.

    Raises:
        NoSuchView: there is none.
    """
    workload = find_workload(settings.workload)
    found = [v for v in workload.views if v.name == view]
    sql = workload.script(ENDING).read_text()
    if not found or topics.of_view(view) not in script.own_topics(sql):
        raise NoSuchView(f"Flink's demo has no view {view!r}.")
    return found[0].columns
