"""Tests of the views' reference SQL on synthetic events, against the same computation in Python."""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from racetrack.verify import sources
from racetrack.verify.compare import Compared, compare
from racetrack.workloads.ads.harness import WORKLOAD

Row = dict[str, Any]
START_MS = 1_774_155_868_000  # not a multiple of ten seconds
WINDOW_MS = 10_000
CAMPAIGNS = [f"campaign {n}" for n in range(4)]  # the last one has no ad
ADS = {f"ad {n}": CAMPAIGNS[n % 3] for n in range(9)}
MOST_FINDINGS = 5


def events() -> list[Row]:
    """Return events, some at the first and last millisecond of a window, some of an unknown ad."""
    r = random.Random(1)  # noqa: S311  # the same events every time
    at = [START_MS + n * 50 for n in range(1_000)] + [START_MS + 2_000 - 1, START_MS + 2_000]
    offsets: Counter[int] = Counter()
    found = []
    for event_time in at:
        partition = r.randrange(3)
        ad_id = r.choice([*ADS, "ad of nobody"])
        event_type = r.choice(("view", "click", "purchase"))
        found.append(
            {
                "partition": partition,
                "offset": offsets[partition],
                "ad_id": ad_id,
                "event_type": event_type,
                "event_time": event_time,
            }
        )
        offsets[partition] += 1
    return found


def views_of(of: list[Row]) -> dict[str, list[Row]]:
    """Return the rows of each view in a correct engine, computed in Python."""
    seen = Counter(
        (ADS[e["ad_id"]], e["event_time"] // WINDOW_MS * WINDOW_MS)
        for e in of
        if e["event_type"] == "view" and e["ad_id"] in ADS
    )
    partitions = sorted({e["partition"] for e in of})
    newest = {p: max(e["event_time"] for e in of if e["partition"] == p) for p in partitions}
    total = Counter(e["partition"] for e in of)
    return {
        "campaigns": [{"campaign_id": one} for one in CAMPAIGNS],
        "ads": [{"ad_id": ad, "campaign_id": campaign} for ad, campaign in ADS.items()],
        "ad_events_progress": [
            {"partition": p, "total": total[p], "max_received_at": newest[p]} for p in partitions
        ],
        "ad_events_summary": [{"total": len(of), "max_received_at": max(newest.values())}],
        "campaign_windows": [
            {"campaign_id": campaign, "window_start_ms": window, "seen_count": count}
            for (campaign, window), count in seen.items()
        ],
    }


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Load the sources, and compute the expected content of the views."""
    with sources.open_database(WORKLOAD, tmp_path_factory.mktemp("spill")) as opened:
        sources.take_table(opened, WORKLOAD.view("campaigns"), [(one,) for one in CAMPAIGNS])
        sources.take_table(opened, WORKLOAD.view("ads"), list(ADS.items()))
        opened.register("messages", pa.Table.from_pylist(events()))
        opened.execute("INSERT INTO source.ad_events BY NAME SELECT * FROM messages")
        for view in WORKLOAD.views:
            sources.expect(opened, WORKLOAD, view)
        yield opened


def judged(db: duckdb.DuckDBPyConnection, view: str, rows: list[Row]) -> Compared:
    return compare(db, WORKLOAD.view(view), pa.Table.from_pylist(rows), MOST_FINDINGS)


def test_every_view_of_a_faultless_engine_is_right(db: duckdb.DuckDBPyConnection) -> None:
    found = views_of(events())
    assert found.keys() == {view.name for view in WORKLOAD.views}
    for name, rows in found.items():
        compared = judged(db, name, rows)
        assert compared.right, (name, compared.findings)
        assert compared.compared == len(rows) > 0


def test_a_view_that_was_lost_or_counted_twice_is_named_and_a_window_in_the_wrong_place_twice(
    db: duckdb.DuckDBPyConnection,
) -> None:
    for column, change, expected in (
        ("seen_count", -1, (0, 0, 1)),
        ("seen_count", 1, (0, 0, 1)),
        ("window_start_ms", 1, (1, 1, 0)),
    ):
        rows = views_of(events())["campaign_windows"]
        rows[7][column] += change
        compared = judged(db, "campaign_windows", rows)
        assert (compared.missing, compared.extra, compared.different) == expected
        assert len(compared.findings) == sum(expected)
        finding = next(of for of in compared.findings if of.source)
        assert finding.source and finding.source["campaign_id"] == rows[7]["campaign_id"]
