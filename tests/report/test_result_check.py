"""Tests of what a pull request with a result is checked for."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from racetrack.cli.report import publish
from racetrack.config import REPO
from racetrack.engines import find_engine
from racetrack.report.result_check import faults, slower_than_published
from racetrack.report.standings import read_results
from tests.report.folders import RunSpec, edit, run

Record = dict[str, Any]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Copy the committed results."""
    return Path(shutil.copytree(REPO / "results", tmp_path / "results"))


def changed(root: Path, change: Callable[[Record], None], engine: str = "flink") -> str:
    """Change that result of an engine on the shop which has most windows, and return the name of
    its file."""
    files = root.glob(f"shop/amd-*/{engine}@*.json")
    file = max(files, key=lambda file: len(json.loads(file.read_text())["windows"]))
    record = json.loads(file.read_text())
    change(record)
    file.write_text(json.dumps(record))
    return str(file.relative_to(root))


def window_at(record: Record) -> Record:
    """Return the window at half of the capacity."""
    windows: list[Record] = record["windows"]
    return next(window for window in windows if window.get("share") == 0.5)


def set_figure(key: str, value: float) -> Callable[[Record], None]:
    """Return a change of a figure at half of the capacity."""
    return lambda record: window_at(record)["figures"].update({key: value})


def test_the_committed_results_and_pages_pass() -> None:
    done = CliRunner().invoke(publish, ["--check"])
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (set_figure("cpu_s_per_million", 40.0), "cpu_s_per_million 40.0"),
        (set_figure("processed_events_per_s", 20_000.0), "processed_events_per_s"),
        (set_figure("view_lag_p99_ms", 20.0), "view_lag_p99_ms 20 ms"),
        (set_figure("achieved_events_per_s", 7_000.0), "achieved_events_per_s"),
        (set_figure("memory_gib", 24.0), "memory_gib"),
        (set_figure("shine", 1.0), "shine: there is no such figure"),
        (lambda record: window_at(record).update(per_s=12_000), "per_s is 12,000"),
    ],
)
def test_a_figure_that_others_contradict_is_named(
    change: Callable[[Record], None], names: str, root: Path
) -> None:
    file = changed(root, change)
    (fault,) = [line for line in faults(root) if names in line]
    assert fault.startswith(f"{file}: window ")
    assert "_UTC_flink_planned" in fault


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (lambda record: record.update(schema_version=2), "2"),
        (lambda record: record["machine"].update(cores=8), "8-cores"),
        (lambda record: record["noise"].update(core_max_mib_per_s=400.0), "two machines"),
        (lambda record: record["views"].update(wrong=record["views"]["right"][:1]), "views"),
        (lambda record: record.update(measured_until="2020-01-01"), "measured_until"),
    ],
)
def test_a_result_that_is_none_is_named(
    change: Callable[[Record], None], names: str, root: Path
) -> None:
    file = changed(root, change)
    assert any(Path(file).name in line and names in line for line in faults(root))


@pytest.mark.parametrize(("times", "is_slow"), [(1.2, False), (1.4, True)])
def test_a_result_of_a_slow_hour_is_named(times: float, is_slow: bool, root: Path) -> None:
    changed(root, reads(10.0), "kstreams")
    slow = changed(root, reads(10.0 * times))
    named = [line for line in faults(root) if line.startswith(f"{slow}: memory_read_max_ns")]
    assert len(named) == is_slow
    assert all("memory_read_max_ns 14, but 10 in " in line for line in named)


def reads(most_ns: float) -> Callable[[Record], None]:
    """Return a change of the times of a read from memory, of which the shortest is 10 ns."""
    return lambda record: record["noise"].update(
        memory_read_min_ns=10.0, memory_read_max_ns=most_ns
    )


@pytest.mark.parametrize(
    ("share", "times", "why"),
    [
        (0.85, 1.2, ""),
        (0.75, 1.2, "a core does"),
        (0.85, 1.4, "a read from memory takes 14.0 ns, but took 10.0 ns"),
    ],
)
def test_a_slow_hour_is_named_before_it_is_measured(
    share: float, times: float, why: str, root: Path
) -> None:
    file = changed(root, reads(10.0))
    results = read_results(root)
    machine = next(each.machine for each in results if each.file_name == file)
    of_machine = [each for each in results if each.machine == machine]
    fastest = max(each.noise.core_max_mib_per_s or 0 for each in of_machine)
    found = slower_than_published(root, machine, share * fastest, 10.0 * times)
    assert bool(found) == bool(why) and why in found
    other = machine.model_copy(update={"cores": 64})
    assert not slower_than_published(root, other, 1.0, 1_000.0)


def test_publishing_a_result_that_will_be_refused_fails(tmp_path: Path) -> None:
    codes = []
    for engine, speed in (("flink", 1_000.0), ("kstreams", 700.0)):
        spec = RunSpec(engine=engine, foreign_pct=0.0, core_mib_per_s=speed)
        folder = run(tmp_path / "logs", spec)
        edit(folder, versions={"racetrack": "1", find_engine(engine).version_part: "2"})
        arguments = [folder, "--results", tmp_path / "results", "--pages", tmp_path / "docs"]
        done = CliRunner().invoke(publish, [*map(str, arguments)])
        codes.append(done.exit_code)
    assert codes == [0, 1]
    assert "core_max_mib_per_s 700" in done.output


def test_pages_of_other_results_are_named(root: Path, tmp_path: Path) -> None:
    docs = Path(shutil.copytree(REPO / "docs", tmp_path / "docs"))
    (root / "shop").rename(tmp_path / "elsewhere")
    arguments = ["--check", "--results", str(root), "--pages", str(docs)]
    done = CliRunner().invoke(publish, arguments)
    assert done.exit_code == 1
    assert {"index.html", "results.md", "choosing.md"} <= {*done.output.replace("/", " ").split()}
