"""Follows the progress of a Deephaven that the user provides by reading two small tables
repeatedly. Each update gets the time of this machine's clock at which the answer arrived."""

import threading
import time
from collections.abc import Iterator
from typing import Any

from racetrack.clock import now_ms
from racetrack.config import Settings
from racetrack.engines.contract import Progress, Seen, Summary
from racetrack.engines.dh.connection import reading
from racetrack.engines.dh.elsewhere import OBSERVED, SEEN
from racetrack.engines.shared.tracer import only_more

LOOK_EVERY_S = 0.1
Row = dict[str, Any]


def updates(
    settings: Settings, run_name: str, stop: threading.Event
) -> Iterator[Summary | Progress]:
    """Yield each change of the two progress views, until `stop` is set."""
    before: dict[tuple[str, int], Row] = {}
    for row in _rows(settings, f"{run_name}_{OBSERVED}", stop):
        key = row["kind"], row["partition"]
        if row == before.get(key) or row["max_received_at"] is None:
            continue
        before[key] = row
        at_ms, total, newest_ms = now_ms(), row["total"], row["max_received_at"]
        if row["kind"] == "summary":
            yield Summary(at_ms, total, newest_ms, at_ms - newest_ms)
        elif row["kind"] == "progress":
            yield Progress(at_ms, row["partition"], total, newest_ms)


def seen(settings: Settings, run_name: str, stop: threading.Event) -> Iterator[Seen]:
    """Yield each change of the traced views' tracer rows, until `stop` is set."""
    return only_more(
        Seen(now_ms(), row["name"], row["partition"], row["value"])
        for row in _rows(settings, f"{run_name}_{SEEN}", stop)
        if row["value"] is not None
    )


def _rows(settings: Settings, table: str, stop: threading.Event) -> Iterator[Row]:
    """Yield all rows of a table every LOOK_EVERY_S seconds, and once more after `stop` has been
    set."""
    with reading(settings) as session:
        found = session.open_table(table)
        while True:
            is_last, next_s = stop.is_set(), time.monotonic() + LOOK_EVERY_S
            yield from found.to_arrow().to_pylist()
            if is_last:
                return
            stop.wait(next_s - time.monotonic())
