"""Tests of scripts/sample_dt.py with a fake Deephaven: its output and its listeners."""

import re
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[4] / "scripts" / "sample_dt.py"


class Update:
    """An update as Deephaven passes it to a listener: the columns of new rows and of changed
    rows."""

    def __init__(self, added: dict[str, list[Any]], modified: dict[str, list[Any]]) -> None:
        self._added, self._modified = added, modified

    def added(self) -> dict[str, list[Any]]:
        return self._added

    def modified(self) -> dict[str, list[Any]]:
        return self._modified


class Server:
    """A session of the IDE: its variables, its active listeners, and its standard output."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self.listening: dict[str, tuple[Callable[..., None], dict[str, Any]]] = {}
        self._capture, self._output = capture, ""
        sampled = {"summary": "dt", "progress": "pr", "last_views": ["one", "other"]}
        self.variables: dict[str, Any] = {"sampled": sampled}

    def listen(self, table: str, listener: Callable[..., None], **options: Any) -> Any:
        assert table not in self.listening, "the earlier listener must be stopped first"
        self.listening[table] = (listener, options)
        return types.SimpleNamespace(stop=lambda: self.listening.pop(table))

    def run_script(self) -> None:
        exec(compile(SCRIPT.read_text(), str(SCRIPT), "exec"), self.variables)  # noqa: S102

    @property
    def output(self) -> str:
        self._output += self._capture.readouterr().out
        return self._output


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Server:
    server = Server(capfd)
    module: Any = types.ModuleType("deephaven.table_listener")
    module.listen = server.listen
    monkeypatch.setitem(sys.modules, "deephaven", types.ModuleType("deephaven"))
    monkeypatch.setitem(sys.modules, "deephaven.table_listener", module)
    server.run_script()
    return server


def test_a_changed_summary_is_one_dt_line(server: Server) -> None:
    listener, _ = server.listening["dt"]
    listener(Update({}, {"total": [7], "max_received_at": [1_700_000_000_123], "dt_ms": [4.25]}), 0)
    assert re.fullmatch(
        r"RACETRACK dt timestamp=\d{13}, total=7, max_received_at=1700000000123, dt_ms=4\.250\n",
        server.output,
    )


def test_new_and_changed_partitions_are_a_line_each(server: Server) -> None:
    listener, _ = server.listening["pr"]
    listener(
        Update(
            {"partition": [2], "total": [1], "max_received_at": [30]},
            {"partition": [0, 1], "total": [5, 6], "max_received_at": [10, 20]},
        ),
        False,
    )
    lines = re.findall(
        r"^RACETRACK progress timestamp=(\d{13}), partition=(\d), total=(\d), "
        r"max_received_at=(\d+)$",
        server.output,
        re.MULTILINE,
    )
    assert [line[1:] for line in lines] == [("2", "1", "30"), ("0", "5", "10"), ("1", "6", "20")]
    assert len({line[0] for line in lines}) == 1, "one cycle, one timestamp"


def test_nothing_is_reported_before_the_last_views_are_through(server: Server) -> None:
    waited_for = [options["dependencies"] for _, options in server.listening.values()]
    assert waited_for == [["one", "other"]] * 2


def test_a_failed_table_is_one_line(server: Server) -> None:
    _, options = server.listening["dt"]
    options["on_error"](ValueError("not\n  JSON"))
    assert re.fullmatch(
        r"RACETRACK failed timestamp=\d{13}, listener=dt, error=not JSON\n", server.output
    )


def test_loading_it_again_replaces_the_listeners(server: Server) -> None:
    before = server.listening["dt"][0]
    server.run_script()
    assert set(server.listening) == {"dt", "pr"}
    assert server.listening["dt"][0] is not before


def test_stop_sampling_ends_them_all(server: Server) -> None:
    server.variables["stop_sampling"]()
    assert server.listening == {}


def test_of_a_failure_with_many_causes_the_first_is_reported(server: Server) -> None:
    causes = " ".join(f"Cause {n}: a.b.Odd{n}: odd\n\tat c.d" for n in range(300))
    server.listening["dt"][1]["on_error"](f"Multiple errors encountered: {causes}")
    assert server.output.endswith("listener=dt, error=a.b.Odd0: odd at c.d\n")
    assert server.output.count("\n") == 1
