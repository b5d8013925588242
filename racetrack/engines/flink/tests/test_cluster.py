"""Tests of the addresses at which Flink's processes find each other when each is in its own pod."""

from pathlib import Path

import pytest

from racetrack.config import load
from racetrack.stack.service import Context, Launch, find_service


@pytest.fixture
def context(tmp_path: Path) -> Context:
    part, work = tmp_path / "flink", tmp_path / "work"
    (part / "lib").mkdir(parents=True)
    work.mkdir()
    settings = load(
        {
            "BIND_ADDRESS": "0.0.0.0",  # noqa: S104
            "ENGINE_REPLICAS": "3",
            "FLINK_JOBMANAGER": "boss",
            "FLINK_PARALLELISM": "2",
            "FLINK_HEAP": "2g",
            "FLINK_PROPERTIES": "pipeline.object-reuse=true taskmanager.memory.network.max='1 gb'",
        }
    )
    return Context(settings, work, {"flink": part})


def launch(name: str, context: Context) -> tuple[Launch, dict[str, str]]:
    launched = find_service(name).launch(context)
    lines = (context.work / "conf" / "config.yaml").read_text().splitlines()
    written = dict(line.split(": ", 1) for line in lines)
    return launched, {name: value.strip('"') for name, value in written.items()}


@pytest.mark.parametrize("name", ["flink", "jobmanager", "taskmanager"])
def test_all_know_the_job_manager_and_have_the_further_properties(
    name: str, context: Context
) -> None:
    _, written = launch(name, context)
    assert written["pipeline.object-reuse"] == "true"
    assert written["taskmanager.memory.network.max"] == "1 gb"  # it overrides our own
    assert written["jobmanager.rpc.address"] == written["rest.address"] == "boss"
    assert (written["parallelism.default"], written["taskmanager.numberOfTaskSlots"]) == ("6", "2")


def test_jobs_of_the_gateway_go_to_the_job_manager_whose_heap_is_small(context: Context) -> None:
    launched, written = launch("flink", context)
    assert written["execution.target"] == "remote" and "-Xmx1g" in launched.argv
    launched, _ = launch("jobmanager", context)  # it runs no tasks
    assert "-Xmx1g" in launched.argv
    assert launched.argv[-2:] == ["--configDir", str(context.work / "conf")]


def test_a_task_manager_has_the_heap_of_the_settings(context: Context) -> None:
    launched, written = launch("taskmanager", context)
    assert {"-Xmx2g", "-Xms2g"} <= {*launched.argv}
    heap = sum(
        int(written[f"taskmanager.memory.{part}.heap.size"].rstrip("b"))
        for part in ("framework", "task")
    )
    assert heap == 2 << 30
