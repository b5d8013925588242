"""The command line: wrong arguments end in one clear line, the usage, and exit code 2."""

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from racetrack import cli, engines
from racetrack.run import session
from racetrack.stack.contract import Standing, Unmeasurable


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nosuch", "5000", "20", "10", "1.0"], "nosuch"),
        (["dh", "0", "20", "10", "1.0"], "RATE"),
        (["dh", "-5", "20", "10", "1.0"], "RATE"),
        (["dh", "many", "20", "10", "1.0"], "RATE"),
        (["dh", "5000", "0", "10", "1.0"], "WAIT"),
        (["dh", "5000", "nan", "10", "1.0"], "WAIT"),
        (["dh", "5000", "20", "0", "1.0"], "SAMPLES"),
        (["dh", "5000", "20", "1.5", "1.0"], "SAMPLES"),
        (["dh", "5000", "20", "10", "-1"], "DELAY"),
        (["dh", "5000", "20", "10", "inf"], "DELAY"),
        (["dh", "5000", "20", "10"], "DELAY"),
        ([], "ENGINE"),
    ],
)
def test_a_wrong_argument_is_named(arguments: list[str], says: str) -> None:
    result = CliRunner().invoke(cli.experiment.experiment, arguments)
    assert result.exit_code == 2
    assert "Usage: " in result.output
    (error_line,) = [line for line in result.output.splitlines() if line.startswith("Error: ")]
    assert says in error_line


@pytest.mark.parametrize("command", [cli.experiment.experiment, cli.race])
def test_help_shows_an_example_and_the_exit_codes(command: object) -> None:
    result = CliRunner().invoke(command, ["--help"])  # type: ignore[arg-type]
    assert result.exit_code == 0
    assert "./run_experiment.sh dh 5000 20 10 1.0" in result.output
    assert "Exit codes" in result.output


def test_a_bad_setting_ends_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KAFKA_PORT", "none")
    result = CliRunner().invoke(cli.race, ["status"])
    assert result.exit_code == 2
    assert "KAFKA_PORT" in result.output


def test_status_tells_processes_only_where_they_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    services = {"mysql": [70, 71], "broker": []}
    up = Standing("dh", "2026-11-22T08:00:00Z", list(services), services)
    monkeypatch.setattr(cli.status, "standing_stack", lambda _: (None, up))
    result = CliRunner().invoke(cli.race, ["status"])
    assert result.exit_code == 0
    assert "  mysql      pid 70, 71\n" in result.output
    assert "  broker     running\n" in result.output


def up_with(monkeypatch: pytest.MonkeyPatch, **of_stack: object) -> tuple[SimpleNamespace, Result]:
    """`./race up` with a made-up engine and stack, that has besides what is given here."""
    stack = SimpleNamespace(
        endpoints=SimpleNamespace(loadgen_host="127.0.0.1", loadgen_port=8090),
        settings=SimpleNamespace(airgap=False, workload="shop"),
        runtime="compose",
        prepare=lambda *_: None,
        start=lambda *_: None,
        stop=lambda _: None,
        leave_running=lambda _: None,
        where_logs=lambda: "logs",
        **of_stack,
    )
    engine = SimpleNamespace(
        needs=(),
        services=(),
        services_in=lambda _: (),
        check=lambda _: None,
        prepare_inputs=lambda _: None,
        usage_hints=lambda _: ["IDE: there"],
    )

    def open_stack(*_: object, to_play: bool) -> object:
        assert to_play
        return stack

    monkeypatch.setattr(cli.up, "open_stack", open_stack)
    monkeypatch.setattr(cli.up, "machine_lock", nullcontext)  # a run may be under way
    monkeypatch.setattr(engines, "find_engine", lambda _: engine)
    return stack, CliRunner().invoke(cli.race, ["up", "dh"])


@pytest.mark.parametrize("unmeasurable", [None, Unmeasurable("They are in there", "Go inside")])
def test_up_says_at_its_end_what_can_not_be_measured(
    monkeypatch: pytest.MonkeyPatch, unmeasurable: Unmeasurable | None
) -> None:
    checked: list[object] = []
    monkeypatch.setattr(session, "check_writes", lambda of, *_: checked.append(of))
    stack, result = up_with(monkeypatch, unmeasurable=unmeasurable)
    assert result.exit_code == 0, result.output
    assert checked == [stack]
    last = result.output.splitlines()[-1]
    assert last == (
        "Good for playing only. They are in there: CPU and memory can't be measured, and"
        " `./run_experiment.sh` refuses. Go inside."
        if unmeasurable
        else "Logs: logs. Take it down: ./race down"
    )


def test_up_ends_when_a_service_dies_while_writes_are_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def check_writes(_stack: object, _say: object, meanwhile: Callable[[], None]) -> None:
        meanwhile()

    monkeypatch.setattr(session, "check_writes", check_writes)
    died = {"broker": "exit code 1. Its last words: no space left"}
    _, result = up_with(monkeypatch, died=lambda: died, unmeasurable=None)
    assert result.exit_code == 1
    assert "broker ended in mid-run: exit code 1" in result.output
