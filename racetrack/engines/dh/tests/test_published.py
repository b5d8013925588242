"""Tests of views that Deephaven publishes to Kafka, some with a real server and a real Kafka."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from racetrack.config import load
from racetrack.engines.dh.elsewhere import ELSEWHERE
from racetrack.engines.dh.engine import ENGINE
from racetrack.engines.dh.inputs import PATIENCE
from racetrack.engines.dh.published import PublishedViews, code
from racetrack.engines.dh.tests.brought import Brought, load_there
from racetrack.engines.shared.tests.fakes import stack
from racetrack.engines.shared.upsert import new_topics, views
from racetrack.engines.shared.upsert.topics import Topics
from racetrack.errors import RacetrackError
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.stack.elsewhere import RUN_NAME
from racetrack.workloads.contract import DECIMAL, INTEGER, TEXT, TIME
from tests.secured_kafka import ADMIN, PREFIX, secured_kafka
from tests.waiting import wait_until

PUBLISHED = {"DEEPHAVEN_PUBLISH": "true"}


def test_views_are_followed_in_kafka_only_if_the_setting_says_so() -> None:
    served, published = load(), load(PUBLISHED)
    assert ENGINE.observer_in(served) is ENGINE
    assert ENGINE.observer_in(published).stamped_by == "broker"
    assert ENGINE.clients(served) and not ENGINE.clients(published)
    (caveat,) = ENGINE.caveats(published)
    assert "DEEPHAVEN_PUBLISH" in caveat
    assert not any("DEEPHAVEN_PUBLISH" in each for each in ENGINE.caveats(served))


# ---- A real server and a real Kafka --------------------------------------------------------------

# The row `id = 2` of `shrinking` is removed after about three seconds, and the others stay.
SCRIPT = """
from deephaven import agg, time_table
kafka_properties, PREFIX = ENVIRONMENT["CLIENT"], ENVIRONMENT["PREFIX"]
ticks = time_table("PT0.1s").update(
    [
        "id = ii % 3",
        "price = java.math.BigDecimal.valueOf(ii * 100, 2)",
        "email = ii % 3 == 0 ? null : `\\u00e4 \\"` + id",
    ]
).view(["id", "n = ii", "price", "email", "at = Timestamp"])
sorted_rows = ticks.last_by("id").sort_descending("n")
shrinking = sorted_rows.where("id != 2 || n < 30")
all_ticks = ticks.agg_by(agg.count_("total"))
"""
KEYS = {"sorted_rows": ["id"], "shrinking": ["id"], "all_ticks": []}
COLUMNS = {"id": INTEGER, "n": INTEGER, "price": DECIMAL, "email": TEXT, "at": TIME}


@pytest.mark.slow
def test_every_row_is_published_whole_and_removed_rows_are_removed(
    server: Brought, tmp_path: Path
) -> None:
    before = server.kafka_threads()
    with secured_kafka(tmp_path) as running:
        kafka = KafkaEndpoint(running.address(ADMIN), PREFIX)
        new_topics.make(kafka, [f"dh.{view}" for view in KEYS])
        environment = {"CLIENT": {**PATIENCE, **kafka.java()}, "PREFIX": PREFIX}
        scripts = {"tried.py": SCRIPT, "publish.py": code(KEYS)}
        load_there(server, scripts, environment)
        with Topics(kafka) as source:

            def rows(view: str) -> list[dict[str, Any]]:
                found = views.table(COLUMNS, source.latest(f"dh.{view}")).to_pylist()
                return sorted(found, key=lambda row: int(row["id"]))

            wait_until(lambda: [r["n"] > 30 for r in rows("sorted_rows")] == [True] * 3, "rows")
            wait_until(lambda: [r["id"] for r in rows("shrinking")] == [0, 1], "removal")
            for row in rows("sorted_rows"):
                assert row["price"] == Decimal(row["n"])
                assert row["email"] == (f'ä "{row["id"]}' if row["id"] else None)
                assert isinstance(row["at"], int)
            (total,) = (json.loads(value)["total"] for value in source.latest("dh.all_ticks"))
            assert total > 30
            begins = {value.split(b",")[0] for value in source.latest("dh.sorted_rows")}
            assert begins == {b'{"id":0', b'{"id":1', b'{"id":2'}
        ELSEWHERE.remove(load(server.settings()), RUN_NAME)
        wait_until(lambda: server.kafka_threads() == before, "end of all threads", every_s=0.5)


FAILING = """
from deephaven import time_table
pageviews_progress = time_table("PT0.1s").update(
    ["total = ii", "number = Long.parseLong(ii < {last} ? `1` : `no number`)"]
)
"""


@pytest.mark.slow
def test_a_view_that_fails_is_reported_though_no_message_comes(server: Brought) -> None:
    elsewhere = stack(**server.settings(), **PUBLISHED)
    check = PublishedViews(check_every_s=0).watch(elsewhere)
    check()  # nothing is loaded
    load_there(server, {"tried.py": FAILING.format(last=1_000_000)})
    check()
    load_there(server, {"tried.py": FAILING.format(last=10)})
    try:
        with pytest.raises(RacetrackError, match="Deephaven refused a request"):
            wait_until(check, "failure", every_s=0.5)
    finally:
        ELSEWHERE.remove(elsewhere.settings, RUN_NAME)
    PublishedViews(check_every_s=0).watch(stack(DEEPHAVEN_PORT="1"))()  # a server that has ended
