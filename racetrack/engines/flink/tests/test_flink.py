"""Tests of Flink's module without Flink; also of a Flink that the user provides."""

from pathlib import Path
from typing import Any

import pytest

from racetrack import config as settings
from racetrack.config import load
from racetrack.engines import find_engine
from racetrack.engines.contract import DemoError
from racetrack.engines.flink.elsewhere import ELSEWHERE
from racetrack.engines.flink.engine import statements_for
from racetrack.engines.flink.job import JobLog, last_checkpoint
from racetrack.engines.shared.tests.fakes import stack
from racetrack.errors import SetupError
from racetrack.kafka_endpoint import KafkaEndpoint

FLINK = find_engine("flink")
TRACE = """\
org.apache.flink.table.gateway.service.utils.SqlExecutionException: Failed to execute 1.
\tat org.apache.flink.table.gateway.Service.run(Service.java:414)
Caused by: org.apache.flink.table.api.ValidationException: SQL validation failed. From line 1
\tat org.apache.flink.table.planner.Planner.parse(Planner.java:12)
\t... 6 more
Caused by: org.apache.calcite.sql.validate.SqlValidatorException: Object 'nowhere' not found
Did you mean 'elsewhere'?
\tat java.base/java.lang.Thread.run(Thread.java:840)
\t... 9 more
"""
CAUSE = "SqlValidatorException: Object 'nowhere' not found\nDid you mean 'elsewhere'?"


def test_a_kafka_elsewhere_gets_its_properties_and_prefix() -> None:
    own: Any = stack()
    own.internal_endpoints.kafka = KafkaEndpoint(
        "a.example:9092",
        "race-1.",
        java_properties={"sasl.jaas.config": "org.apache.kafka.Module user='me' secret;"},
    )
    sql = "\n".join(statements_for(own, FLINK.script(settings.load())))
    shaded = "org.apache.flink.kafka.shaded.org.apache.kafka.Module user=''me'' secret;"
    assert sql.count(f"'properties.sasl.jaas.config' = '{shaded}'") == 3
    assert "'topic' = 'race-1.mysql.shop.users'" in sql
    assert "'topic' = 'race-1.flink.item_summary'" in sql
    assert "secret" not in "\n".join(FLINK.usage_hints(own))


def statements(**overrides: str) -> dict[str, str]:
    """Return the statements for the shop by the names of what they create."""
    own = stack(**overrides)
    created = statements_for(own, FLINK.script(own.settings))
    return {each.split()[2]: each for each in created if each.startswith("CREATE TABLE ")}


@pytest.mark.parametrize(
    ("every_ms", "guarantee", "exact"),
    [
        ("0", "exactly_once", False),
        ("10000", "at_least_once", False),
        ("10s", "exactly_once", True),
    ],
)
def test_rows_are_written_in_transactions_only_with_checkpoints(
    every_ms: str, guarantee: str, exact: bool
) -> None:
    given = {"FLINK_CHECKPOINT_MS": every_ms, "FLINK_GUARANTEE": guarantee}
    made = statements(**given)
    writing = {name for name, each in made.items() if "'sink.delivery-guarantee'" in each}
    assert ("item_summary" in writing) is exact
    assert ("read_committed" in made["at_kafka"]) is exact
    ids = [
        each.partition("transactional-id-prefix' = ")[2].split("'")[1]
        for each in made.values()
        if "transactional-id-prefix" in each
    ]
    assert len(set(ids)) == len(ids) == len(writing)
    assert (FLINK.readable_ms(settings.load(given), 1) > 1) is exact  # type: ignore[attr-defined]
    for elsewhere in ({"FLINK_GATEWAY_URL": "http://f.example:1"}, {"RUNTIME": "kubernetes"}):
        assert "delivery-guarantee" not in str(statements(**given, **elsewhere))


def test_the_last_complete_checkpoint_is_found_in_the_log(tmp_path: Path) -> None:
    log, folder = tmp_path / "flink.log", "file:///tmp/checkpoints"
    line = "2026-11-23T10:00:0{}.000Z INFO CheckpointCoordinator: {}.\n".format
    done = "Completed checkpoint {} for job {} (86 bytes, checkpointDuration=4 ms)".format
    log.write_text(
        line(0, done(9, "0a1"))
        + line(1, done(1, "7fe"))
        + line(2, "Triggering checkpoint 2 (type=CheckpointType{name='Checkpoint'}) for job 7fe")
    )
    assert last_checkpoint(log, f"{folder}/") == f"{folder}/7fe/chk-1"
    log.write_text(line(0, "nothing of the kind"))
    assert last_checkpoint(log, folder) is None


def test_only_the_last_job_of_a_log_counts(tmp_path: Path) -> None:
    path = tmp_path / "flink.log"
    log, line = JobLog(path), "x INFO Graph: Job {} (0a1) switched from state {}.\n"

    def write(text: str) -> None:
        with path.open("a") as file:
            file.write(text)

    write(line.format("old", "RUNNING to FAILING") + line.format("old", "CREATED to RUNNING"))
    log.check()
    write(line.format("old", "CREATED to RUNNING"))
    log.skip()

    assert not log.has_started()
    write(line.format("new", "CREATED to RUNNING") + "half a")
    assert log.has_started()
    write(f" line\n{line.format('new', 'RUNNING to FAILING')}{TRACE}")
    with pytest.raises(DemoError) as failed:
        log.check()
    assert CAUSE in str(failed.value) and "\tat " not in str(failed.value)


CLOSED = {"FLINK_GATEWAY_URL": "http://127.0.0.1:1"}


def test_jobs_that_can_not_be_cancelled_are_listed() -> None:
    (line,) = ELSEWHERE.remove(load(CLOSED), "racetrack_20260101_000000_1")
    assert "racetrack_20260101_000000_1" in line and "Connection refused" in line
    with pytest.raises(SetupError, match="can't open a session: "):
        ELSEWHERE.check(load(CLOSED))
    assert ELSEWHERE.remove(load(CLOSED), "") == ()
