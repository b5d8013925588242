"""Tests of the figures of a service that runs elsewhere, from a real Prometheus."""

import csv
import http.server
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from racetrack.config import Settings, load
from racetrack.engines.pg import engine as pg
from racetrack.errors import RacetrackError, SetupError, UsageError
from racetrack.probes import prometheus as probe
from racetrack.probes.usage import Meter, UsageProbe
from racetrack.results.folder import RunFolder
from racetrack.stack import provided
from racetrack.stack.prometheus import Prometheus, Queries
from tests.fake_server import serve_in_background
from tests.own_prometheus import CPU, MEMORY, Figures, OwnPrometheus, own_prometheus
from tests.waiting import wait_until

URL = "postgres://me@db.example/race"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def figures() -> Figures:
    return Figures()


@pytest.fixture(scope="module")
def prometheus(
    figures: Figures, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OwnPrometheus]:
    with own_prometheus(tmp_path_factory.mktemp("prometheus"), figures) as found:
        yield found


def settings_of(url: str, cpu: str = CPU, memory: str = MEMORY) -> Settings:
    queries = {"POSTGRES_CPU_QUERY": cpu, "POSTGRES_MEMORY_QUERY": memory}
    return load({"POSTGRES_URL": URL, "PROMETHEUS_URL": url, **queries})


@contextmanager
def answering(status: int) -> Iterator[str]:
    """Run a server that gives the same answer to all requests; yield its URL."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(b"no Prometheus")

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        serve_in_background(server)
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def only(settings: Settings) -> Queries:
    (found,) = provided.queried(settings)
    return found


def failures_of(settings: Settings) -> list[str]:
    with pytest.raises(SetupError) as refused:
        Prometheus(settings).check(only(settings), "PostgreSQL")
    return str(refused.value).splitlines()[1:]


def test_what_is_reported_is_in_usage_csv(
    prometheus: OwnPrometheus, figures: Figures, tmp_path: Path
) -> None:
    settings = settings_of(prometheus.url)
    meter = Meter(dict, probe.usage_now(settings, [only(settings)]))
    sampling = UsageProbe(meter, 0.2, RunFolder(tmp_path, "pg"))
    sampling.start()
    wait_until(lambda: sampling.newest[1], "sample")
    figures.cpu_s += 4.5
    wait_until(lambda: sampling.newest[1]["postgres"].cpu_s == 17.0, "newer sample")
    sampling.stop()
    sampling.check()
    with (tmp_path / "usage.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["service"] for row in rows} == {"postgres"}
    assert (rows[0]["cpu_s"], rows[-1]["cpu_s"]) == ("12.50", "17.00")
    assert {row["rss_gib"] for row in rows} == {"3.000000"}


def test_the_engines_cost_is_then_known(prometheus: OwnPrometheus) -> None:
    blank = load({"POSTGRES_URL": URL})
    assert pg.ENGINE.measured_services(blank) == ()
    assert pg.ENGINE.measured_services(settings_of(prometheus.url)) == ("postgres", "pgfeed")
    Prometheus(settings := settings_of(prometheus.url)).check(only(settings), "PostgreSQL")


@pytest.mark.parametrize(
    ("query", "answer", "remedy"),
    [
        ("nothing_of_this_name", "0 values instead of one", "a counter of CPU seconds"),
        ("{__name__=~'tried_.*_.*'}", "2 values instead of one", "Sum them up: sum(…)"),
        ("sum(", "HTTP 400", "a query for a counter of CPU seconds"),
        (f"-{CPU}", "the value -", "a counter of CPU seconds"),
        (f"{CPU} / 0", "the value +Inf", "a counter of CPU seconds"),
    ],
)
def test_a_query_without_one_number_is_refused(
    prometheus: OwnPrometheus, query: str, answer: str, remedy: str
) -> None:
    (why,) = failures_of(settings_of(prometheus.url, cpu=query))
    assert why.startswith(f"  POSTGRES_CPU_QUERY: {answer}") and remedy in why


def test_a_prometheus_that_does_not_answer_is_refused() -> None:
    why, _ = failures_of(settings_of("http://127.0.0.1:1"))
    assert "PROMETHEUS_URL: no answer: " in why and "refused" in why and "Check host" in why


@pytest.mark.parametrize(
    ("status", "setting"), [(401, "PROMETHEUS_TOKEN_FILE"), (404, "PROMETHEUS_URL")]
)
def test_another_answer_names_the_setting(status: int, setting: str) -> None:
    with answering(status) as url:
        why, _ = failures_of(settings_of(url))
    assert why.startswith(f"  {setting}: HTTP {status}")


@pytest.mark.parametrize("missing", ["PROMETHEUS_URL", "POSTGRES_MEMORY_QUERY"])
def test_settings_that_need_each_other_are_named(missing: str) -> None:
    given = {
        "POSTGRES_URL": URL,
        "PROMETHEUS_URL": "http://localhost:9090",
        "POSTGRES_CPU_QUERY": CPU,
        "POSTGRES_MEMORY_QUERY": MEMORY,
    }
    with pytest.raises(UsageError, match=missing):
        provided.queried(load({**given, missing: ""}))


def test_a_counter_that_starts_again_goes_on() -> None:
    usage = probe.ReportedUsage()
    for cpu_s in (100.0, 110.0, 2.0, 5.0):
        usage.take("postgres", cpu_s, 0.0)
    assert usage.by_service["postgres"].cpu_s == 115.0


def test_the_last_sample_counts_until_prometheus_is_away_for_long() -> None:
    now_s = 0.0
    usage = probe.ReportedUsage(lambda: now_s)
    usage.take("postgres", 100.0, 0.0)
    for now_s in (10.0, 30.0, 40.0):  # noqa: B007  # read by the clock
        usage.miss("postgres", "PROMETHEUS_URL: no answer.")
    assert usage.by_service["postgres"].cpu_s == 100.0
    now_s = 40.1
    with pytest.raises(RacetrackError, match=r"nothing of postgres for 30 s\. PROMETHEUS_URL"):
        usage.miss("postgres", "PROMETHEUS_URL: no answer.")
