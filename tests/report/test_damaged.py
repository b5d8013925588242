"""Tests of damaged files: a report names them, with the line, and shows the rest."""

import io
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from racetrack import cli
from racetrack.analysis import table
from racetrack.errors import RacetrackError
from racetrack.report.html import write
from racetrack.report.publish import EngineName, publish
from racetrack.report.render import document, show
from racetrack.report.runs import notes_of, read_runs, readable
from racetrack.report.sheet import sheet
from tests.records import verified
from tests.report import folders
from tests.report.folders import RIGHT, WRONG, PlannedRun, RunSpec
from tests.report.test_publish import compared

pytestmark = pytest.mark.slow

DAMAGED, SEED = 100, 7
SESSION = "2026.03.22.05.00.00_UTC_steady_live"
SHORT: dict[str, Any] = {"window_s": 10.0}
ODD: tuple[Any, ...] = (None, [], {}, "", "x", 0, -1, 1.5, 10**30, 1e300, True, ["x"], {"x": 1})


def runs(logs: Path) -> None:
    """Write a run with all that a run can have, one with a fault, a session and its replay."""
    check = verified(users=RIGHT, items=WRONG)
    spec = RunSpec(**SHORT, view_delay_ms=300, read_ms=20, verified=check, foreign_pct=1.0)
    folders.run(logs, spec, "a_run")
    folders.run(logs, RunSpec(**SHORT, arguments={"faults": ("kill:debezium@10s+5s",)}), "a_fault")
    for tag, of in ((SESSION, None), ("2026.03.22.06.00.00_UTC_steady_live", SESSION)):
        folders.session(logs, RunSpec(**SHORT), tag, of)


def experiments(logs: Path) -> None:
    """Write a sweep, a search and a comparison."""
    swept = [
        PlannedRun(RunSpec(**SHORT, settings=of), variant=f"steady[{of}]", settings=of)
        for of in ({"UPDATES_PER_SECOND": "500"}, {"UPDATES_PER_SECOND": "1000"})
    ]
    folders.experiment(logs, "swept", swept)
    folders.search(logs, "steady", 50_000)
    compared(logs)


def cut(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content))]


def garbled(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 5, 50))):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed)


def other(content: bytes, rng: random.Random) -> bytes:
    return rng.choice((b"[]", b"null", b"", b"\n", b"caf\xe9\n", b"[" * 10_000, b'{"a":NaN}'))


def other_digits(content: bytes, rng: random.Random) -> bytes:
    digits = [place for place, byte in enumerate(content) if chr(byte).isdigit()]
    changed = bytearray(content)
    for place in rng.sample(digits, min(3, len(digits))):
        changed[place] = ord(rng.choice("0123456789-.,e"))
    return bytes(changed)


def without_a_line(content: bytes, rng: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    del lines[rng.randrange(len(lines))]
    return b"".join(lines)


def odd_value(content: bytes, rng: random.Random) -> bytes:
    """Replace a value anywhere in a JSON file by one of another type or size."""
    try:
        whole = json.loads(content)
    except ValueError:
        return other_digits(content, rng)
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        inside = value if isinstance(value, dict) else dict(enumerate(value))
        for key, of in inside.items():
            places.append((value, key))
            if isinstance(of, dict | list):
                walk(of)

    walk(whole)
    value, key = rng.choice(places)
    value[key] = rng.choice(ODD)
    return json.dumps(whole).encode()


DAMAGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(cut, garbled, other_digits, without_a_line, other),
    *(odd_value, odd_value, odd_value),
)


def report_on(logs: Path) -> None:
    rows = readable(table.read([logs]))
    runs = read_runs(rows)
    made = sheet(rows, notes=notes_of(runs, rows.rows))
    show(Console(file=io.StringIO()), made)
    document(made).as_json()
    write(logs.parent / "report", rows, made, runs, lambda *_: None)


def publish_all(logs: Path) -> None:
    """Publish all but the sweep, whose runs differ in a setting."""
    named = [path for path in sorted(logs.iterdir()) if "sw" not in path.name]
    publish(named, logs.parent / "results", {"steady": EngineName("Steady Stream", "racetrack")})


def damages(logs: Path) -> Iterator[str]:
    """Damage one file after the other, and mend it again."""
    rng = random.Random(SEED)  # noqa: S311
    files = [path for path in sorted(logs.rglob("*")) if path.is_file() and path.suffix != ".txt"]
    records = [path for path in files if path.suffix == ".json"]
    for _ in range(DAMAGED):
        file, damage = rng.choice(rng.choice((files, records))), rng.choice(DAMAGES)
        content = file.read_bytes()
        if content:
            file.write_bytes(damage(content, rng))
            yield f"{file.relative_to(logs)}, {damage.__name__}"
            file.write_bytes(content)


@pytest.mark.parametrize("write_folders", [runs, experiments])
def test_no_damage_ends_with_a_traceback(
    tmp_path: Path, write_folders: Callable[[Path], None]
) -> None:
    logs = tmp_path / "logs"
    write_folders(logs)
    publish_all(logs)  # works without damage
    failed: list[str] = []
    for what in damages(logs):
        for use in (report_on, publish_all):
            try:
                use(logs)
            except RacetrackError:
                pass
            except Exception as error:  # noqa: BLE001
                failed.append(f"{what}: {error!r}")
    assert not failed, "\n".join(failed)


def with_third_line(change: Callable[[str], str]) -> Callable[[str], str]:
    def damage(text: str) -> str:
        lines = text.splitlines()
        return "\n".join([*lines[:2], change(lines[2]), *lines[3:], ""])

    return damage


@pytest.mark.parametrize(
    ("name", "damage", "line"),
    [
        ("usage.csv", with_third_line(lambda line: line[: len(line) // 2]), 3),
        ("curves.csv", with_third_line(lambda line: f"0,{line.partition(',')[2]}"), 3),
        ("run.json", lambda _: "[]", None),
        ("run.json", lambda _: '{"schema_version": 6, "name": "k6"}', None),
        ("run.json", lambda _: "", 1),
        ("run.json", lambda text: text.replace('"engine"', '"\xe9ngine"'), 5),
    ],
)
def test_a_damaged_folder_is_left_out_with_file_and_line_and_the_rest_is_shown(
    tmp_path: Path, name: str, damage: Callable[[str], str], line: int | None
) -> None:
    logs = tmp_path / "logs"
    folders.run(logs, RunSpec(**SHORT), "intact")
    file = folders.run(logs, RunSpec(**SHORT), "damaged") / name
    file.write_text(damage(file.read_text()), encoding="latin-1", errors="replace")
    where = f"{file}, line {line}:" if line else f"{file}:"
    for paths in (logs, f"{logs / 'intact'} {logs / 'damaged'}"):
        result = CliRunner().invoke(cli.race, f"report {paths} --out {tmp_path / 'out'}")
        assert result.exit_code == 0, result.output
        assert f"left out: {where}" in result.output.replace("\n", "")
        assert "intact" in (tmp_path / "out" / "report.csv").read_text()
    alone = CliRunner().invoke(cli.race, f"report {file.parent} --out {tmp_path / 'out'}")
    assert alone.exit_code == 2 and where in alone.output.replace("\n", "")
