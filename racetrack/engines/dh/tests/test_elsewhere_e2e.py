"""Runs against a Deephaven that the user provides: a real one, started by the test."""

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from psutil import process_iter

from racetrack.analysis import raw
from racetrack.engines.dh.tests.brought import KEY, Brought, brought
from racetrack.probes.usage import usage_of
from tests.e2e.shared import Door, run_folder
from tests.own_prometheus import CPU, MEMORY, Figures, own_prometheus
from tests.run_json import read_run
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e

NothingLeft = Callable[[], None]


@pytest.fixture(scope="module")
def server() -> Iterator[Brought]:
    with brought() as found:
        yield found


@pytest.fixture
def dh_door(
    door: Callable[..., Door], server: Brought, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Door]:
    """`./run_experiment.sh dh …` with DEEPHAVEN_URL at the test's Deephaven."""
    for name, value in server.settings().items():
        monkeypatch.setenv(name, value)

    def open_door(*arguments: str) -> Door:
        return door("run_experiment.sh", "dh", *arguments)

    return open_door


def left(server: Brought) -> list[str]:
    return [name for name in server.names() if "racetrack" in name] + server.kafka_threads()


def test_a_run_is_verified_and_leaves_nothing(
    dh_door: Callable[..., Door],
    server: Brought,
    nothing_left: NothingLeft,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TRACER_EVENTS_PER_SECOND", "12")
    monkeypatch.setenv("READS_PER_SECOND", "6")
    run = dh_door("500", "5", "5", "1.0", "--verify")
    run.until(r"^\[4/")
    assert len(left(server)) > 10
    arguments = " ".join(" ".join(each.info["cmdline"] or ()) for each in process_iter(["cmdline"]))
    assert run.wait() == 0, run.output
    nothing_left()
    wait_until(lambda: not left(server), "end of all tables, consumers and producers", every_s=0.5)
    folder = run_folder(run.output)
    record = read_run(folder)
    assert record["outcome"] == "ok"
    assert record["versions"]["deephaven"][0].isdecimal()
    assert any("it ran at DEEPHAVEN_URL" in caveat for caveat in record["caveats"])
    assert any("Deephaven's clock is" in caveat for caveat in record["caveats"])
    results = record["results"]
    assert results["engine"] is None and record.get("engine_services", ()) in ((), [])
    assert "deephaven" not in results["processes"]
    assert results["processed_pageviews"] == results["published_pageviews"] > 3_000
    assert all(view["lag_p99_ms"] is not None for view in results["views"])
    assert any(read["age"] for read in results["reads"])
    assert not any(read["errors"] for read in results["reads"])
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert [path for path in files if KEY in path.read_text(errors="replace")] == []
    # The server of the test itself gets the key as an option of its JVM, inside its process.
    assert KEY not in arguments + run.output


def test_the_cost_is_what_prometheus_reports(
    dh_door: Callable[..., Door],
    server: Brought,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    figures = Figures(server.pid)
    with own_prometheus(tmp_path, figures) as prometheus:
        monkeypatch.setenv("PROMETHEUS_URL", prometheus.url)
        monkeypatch.setenv("DEEPHAVEN_CPU_QUERY", f"sum({CPU})")
        monkeypatch.setenv("DEEPHAVEN_MEMORY_QUERY", f"sum({MEMORY})")
        before_s = usage_of([server.pid]).cpu_s
        run = dh_door("500", "5", "5", "1.0")
        assert run.wait() == 0, run.output
        after_s = usage_of([server.pid]).cpu_s
    folder = run_folder(run.output)
    record = read_run(folder)
    assert record["engine_services"] == ["deephaven"]
    assert any("what the Prometheus at PROMETHEUS_URL" in caveat for caveat in record["caveats"])
    readings = raw.usage(folder)["deephaven"]
    assert before_s <= readings[0].cpu_s < readings[-1].cpu_s <= after_s
    cost = record["results"]["engine"]
    assert 0 < cost["cpu_s"] < after_s - before_s
    assert cost["rss_max"]["gib"] == pytest.approx(usage_of([server.pid]).rss_gib, rel=0.3)
    assert cost["pss_max_gib"] is None and cost["live_heap_gib"] is None


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_leaves_nothing(
    dh_door: Callable[..., Door], server: Brought, nothing_left: NothingLeft, how: signal.Signals
) -> None:
    run = dh_door("500", "60", "5", "1.0")
    run.until(r"^\[4/")
    assert len(left(server)) > 10
    run.signal(how)
    assert run.wait() == (130 if how is signal.SIGINT else -9), run.output
    wait_until(lambda: not left(server), "end of all tables, consumers and producers", every_s=0.5)
    nothing_left()
