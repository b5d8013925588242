"""Commands that run as a Job: their arguments there, and where their results are delivered."""

import signal
from pathlib import Path

import click
import pytest

from racetrack import cli
from racetrack.cli import job
from racetrack.cli.run import run_experiment
from racetrack.stack.kubernetes.job import JobLost
from racetrack.terminal import Guard, Interrupted, Screen
from tests.cli.conftest import invoke, invoke_command
from tests.run.fakes import Calls
from tests.some_engines import EXAMPLE


def test_output_files_are_written_among_the_logs(tmp_path: Path) -> None:
    to = tmp_path / "x.json"
    typed = f"{EXAMPLE} --rate 2k --json={to} --csv -"
    command = cli.race.get_command(click.Context(cli.race), "run")
    assert command
    context = command.make_context("run", typed.split(), parent=click.Context(cli.race))
    words, files = job.with_outputs_among_logs(context)
    assert words == [EXAMPLE, "--rate", "2k", "--json=logs/.json_file", "--csv", "logs/.csv_file"]
    assert files == {".json_file": str(to), ".csv_file": "-"}


def test_output_files_are_delivered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ".json_file").write_text("[1]\n")
    (tmp_path / ".csv_file").write_text("a\n1\n")
    to = tmp_path / "to.json"
    job.deliver({".json_file": str(to), ".csv_file": "-", ".absent": "-"}, tmp_path)
    assert to.read_text() == "[1]\n"
    assert capsys.readouterr().out == "a\n1\n"
    assert [each.name for each in tmp_path.iterdir()] == ["to.json"]


def test_the_job_gets_settings_only() -> None:
    settings = {"ENGINE_REPLICAS": "2", "DECIDE_WITHIN": "0"}
    others = {"HOME": "/root", "MACHINE_LOCK": "/x"}
    assert job.given_settings({**settings, **others}).keys() == settings.keys()


def test_every_command_that_measures_can_be_a_job_on_kubernetes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBERNETES_JOB", "true")
    results = [invoke(f"{name} {EXAMPLE}") for name in ("compare", "run", "limit")]
    results.append(invoke_command(run_experiment, [EXAMPLE, "5000", "20", "10", "1.0"]))
    for result in results:
        assert result.exit_code == 2
        assert "KUBERNETES_JOB=true needs RUNTIME=kubernetes" in result.output


class FakeJob(Calls):
    """Records what is done; `follow` raises or returns these one after the other."""

    def __init__(self, *ends: BaseException | int) -> None:
        super().__init__()
        self._ends = list(ends)

    def follow(self, _within_s: float | None = None) -> int:
        end = self._ends.pop(0)
        if isinstance(end, BaseException):
            raise end
        return end


def carried_out(fake: FakeJob) -> int:
    screen = Screen()
    return job.carried_out(fake, ["pg"], {}, screen, Guard(screen.say))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ends", "did"),
    [
        ([6], ["copy_rest", "remove"]),
        # After a signal, the harness cleans up first.
        ([Interrupted(signal.SIGINT), 130], ["interrupt INT", "copy_rest", "remove"]),
    ],
)
def test_the_results_of_a_job_are_copied_and_it_is_removed(
    ends: list[BaseException | int], did: list[str]
) -> None:
    fake = FakeJob(*ends)
    assert carried_out(fake) == ends[-1]
    assert fake.did == ["start ['pg'] {}", *did]


def test_of_a_lost_job_what_can_be_copied_is() -> None:
    fake = FakeJob(JobLost("gone"))
    with pytest.raises(JobLost):
        carried_out(fake)
    assert fake.did == ["start ['pg'] {}", "copy", "remove"]
