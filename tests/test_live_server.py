"""Tests of a live session's HTTP interface: data for pages, and accepted actions."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from racetrack.config import REPO
from racetrack.errors import BusyError
from racetrack.live.server import BODY_BYTES, Server, listen
from tests.live_fakes import FakeSession

TOKEN = "let-me"
HEADERS = {"X-Racetrack-Token": TOKEN, "Content-Type": "application/json"}


class Page:
    """A client of a server with a fake session."""

    def __init__(self, session: FakeSession, url: str) -> None:
        self.session, self.url = session, url
        self.client = httpx.Client(base_url=url, timeout=20)

    def act(self, name: str, body: object, **headers: str) -> httpx.Response:
        content = body if isinstance(body, str) else json.dumps(body)
        return self.client.post(f"/actions/{name}", content=content, headers={**HEADERS, **headers})

    @contextmanager
    def events(self) -> Iterator[Iterator[tuple[str, Any]]]:
        with self.client.stream("GET", "/events") as stream:
            yield _events(stream.iter_lines())


def _events(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    name = ""
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


@pytest.fixture
def page() -> Iterator[Page]:
    session = FakeSession()
    server = Server(session, TOKEN, listen("127.0.0.1", 0))
    server.start()
    opened = Page(session, server.url.partition("/#")[0])
    try:
        yield opened
    finally:
        opened.client.close()
        server.stop()


@pytest.mark.slow
def test_a_page_is_greeted_and_then_gets_samples_and_what_happens(page: Page) -> None:
    with page.events() as events:
        name, hello = next(events)
        assert name == "hello"
        assert [each["name"] for each in hello["engines"]] == ["dh", "pg"]
        assert hello["history"]["at_ms"] == []
        kinds = {next(events)[0] for _ in range(4)}
        assert kinds == {"sample", "state"}
        assert page.act("note", {"text": "<b>now</b>"}).json() == {"ok": True}
        happened = next(data for name, data in events if name == "event")
        assert (happened["kind"], happened["text"]) == ("note", "note <b>now</b>")
    with page.events() as again:
        _, hello = next(again)
    assert [event["kind"] for event in hello["events"]] == ["ready", "note"]
    assert hello["history"]["values"]["offered_per_s"][0] == 5_000


@pytest.mark.slow
def test_nothing_is_measured_while_no_page_is_open(page: Page) -> None:
    with page.events() as events:
        for _ in range(4):
            next(events)
    page.client.get("/page/nothing")  # lets the server notice that the page is closed
    for _ in range(50):
        before = page.session.samples
        httpx.get(f"{page.url}/page/nothing")
        time.sleep(0.25)
        if page.session.samples == before:
            return
    pytest.fail("it is measured without a page")


@pytest.mark.parametrize(
    ("name", "body", "arguments"),
    [
        ("rate", {"per_s": "7k"}, {"per_s": 7_000}),
        ("load", {"profile": " spike 5000 50000 10 "}, {"profile": "spike 5k 50k 10s"}),
        ("events", {"kind": "purchases", "per_s": 20}, {"kind": "purchases", "per_s": 20}),
        ("note", {"text": "a\nb"}, {"text": "a b"}),
    ],
)
def test_an_action_is_handed_to_the_session(
    page: Page, name: str, body: object, arguments: object
) -> None:
    answer = page.act(name, body)
    assert (answer.status_code, answer.json()) == (200, {"ok": True})
    (action,) = page.session.acted
    assert (action.name, action.arguments, action.by) == (name, arguments, "user")


@pytest.mark.parametrize(
    ("name", "body", "status", "why"),
    [
        ("nothing", {}, 404, "'nothing'"),
        ("rate", {"per_s": True}, 400, "whole number"),
        ("rate", "{", 400, "JSON object"),
        ("load", {"profile": "recorded /etc/passwd"}, 400, "command line"),
        ("note", {"text": "x" * BODY_BYTES}, 413, "4096"),
    ],
)
def test_what_can_not_be_used_is_refused_with_the_reason(
    page: Page, name: str, body: object, status: int, why: str
) -> None:
    answer = page.act(name, body)
    assert answer.status_code == status
    assert why in answer.json()["error"]
    assert page.session.acted == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"X-Racetrack-Token": "guess"}, 403),
        ({"X-Racetrack-Token": ""}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Host": "evil.example:8099"}, 403),
        ({"Content-Type": "text/plain"}, 415),
    ],
)
def test_only_this_page_with_the_token_changes_anything(
    page: Page, headers: dict[str, str], status: int
) -> None:
    assert page.act("rate", {"per_s": 1}, **headers).status_code == status
    assert page.session.acted == []
    assert page.act("rate", {"per_s": 1}, Origin=page.url).status_code == 200


def test_nothing_changes_by_get_and_another_name_sees_nothing(page: Page) -> None:
    assert page.client.get("/actions/end", headers=HEADERS).status_code == 405
    assert page.session.acted == []
    assert page.client.get("/metrics", headers={"Host": "evil.example"}).status_code == 403


@pytest.mark.parametrize(
    "path", ["/page/..%2fserver.py", "/page/__init__.py", "/page/uplot/..%2f..%2fhtml.py", "/x"]
)
def test_only_files_of_the_page_are_served(page: Page, path: str) -> None:
    answer = page.client.get(path)
    assert answer.status_code == 404
    assert "error" in answer.json()


def test_every_answer_forbids_foreign_content(page: Page) -> None:
    for path in ("/page/uplot/uPlot.min.css", "/metrics", "/nothing"):
        headers = page.client.get(path).headers
        assert headers["content-security-policy"] == "default-src 'self'"
        assert headers["x-content-type-options"] == "nosniff"


def test_the_figures_are_there_for_prometheus_and_the_dashboard(page: Page) -> None:
    accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4"
    answer = page.client.get("/metrics", headers={"Accept": accept})
    assert answer.headers["content-type"].startswith("application/openmetrics-text")
    found = list(text_string_to_metric_families(answer.text))  # type: ignore[no-untyped-call]
    values = {
        (sample.name.removeprefix("racetrack_"), *sample.labels.values()): sample.value
        for family in found
        for sample in family.samples
    }
    lags = {key[1:] for key in values if key[0] == "lag_seconds"}
    views = ("count", "item_summary.pageviews")
    assert lags == {(engine, view) for engine in ("dh", "pg") for view in views}
    assert 0.2 < values["lag_seconds", "dh", "count"] < 0.4
    verdicts = {key[1:] for key, value in values.items() if key[0] == "verdict" and value}
    assert verdicts == {("dh", "kept up"), ("pg", "undecided")}
    assert 0.2 * 2**30 < values["memory_bytes", "deephaven"] < 0.3 * 2**30
    dashboard = json.loads((REPO / "docs" / "grafana-dashboard.json").read_text())
    asked = {
        target["expr"].split()[0] for panel in dashboard["panels"] for target in panel["targets"]
    }
    assert asked <= {*(family.name for family in found), "racetrack_actions_total"}


def test_a_port_in_use_is_named() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(BusyError, match=f"can't listen on 127.0.0.1:{port}"):
            listen("127.0.0.1", port)
