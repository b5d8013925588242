"""`./race scale`: arguments that are refused, and the report on its folder."""

import json
from pathlib import Path
from typing import Any

import pytest

from racetrack.results.repeats import Piece, ScaleRecord
from tests.cli.conftest import invoke
from tests.some_engines import CALIBRATION, EXAMPLE


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ("", "Name either an engine, or a folder"),
        (f"{EXAMPLE} --replicas 2", "at least two numbers"),
        (f"{EXAMPLE} --replicas 2,2", "at least two numbers"),
        (f"{EXAMPLE} --replicas 0,2", "'0' is not a whole number above 0"),
        (f"{EXAMPLE} --hold -5", "-5 is negative"),
        (f"{CALIBRATION} --fail-if 'nothing<3'", "there is no figure 'nothing'"),
    ],
)
def test_what_can_not_be_measured_is_reported(typed: str, says: str) -> None:
    result = invoke(f"scale {typed}")
    assert result.exit_code == 2, result.output
    assert says in result.output


def test_an_engine_that_can_not_be_scaled_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNTIME", "native")
    result = invoke(f"scale {EXAMPLE} --quick")
    assert result.exit_code == 2
    assert "can't be scaled" in result.output


def test_the_report_has_the_answer_the_share_of_ideal_and_a_chart(tmp_path: Path) -> None:
    folder = tmp_path / "2026_UTC_flink_scale"
    folder.mkdir()
    common: dict[str, Any] = {"engine": EXAMPLE, "pageviews_per_s": None, "tag": ""}
    pieces = tuple(
        Piece(**common, replicas=count, repeat=repeat, figures={"capacity_per_s": per_s})
        for count in (1, 2, 4)
        for repeat, per_s in enumerate((10_000 * count, 10_100 * count, 9_900 * count), start=1)
    )
    record = ScaleRecord(
        engine=EXAMPLE, replicas=(1, 2, 4), partitions=8, repeats=3, seed=1, pieces=pieces
    )
    (folder / "scale.json").write_text(record.model_dump_json())
    exported = tmp_path / "all.json"
    result = invoke(f"report {folder} --json {exported}")
    assert result.exit_code == 0, result.output
    assert f"`{EXAMPLE} × 4` gets furthest: capacity 39,9" in result.output
    (section,) = json.loads(exported.read_text())["sections"]
    ideal = {
        one["variant"]: one["mean"]
        for one in section["figures"]
        if one["metric"] == "share_of_ideal_pct"
    }
    assert ideal == {f"{EXAMPLE} × {count}": pytest.approx(100) for count in (2, 4)}
    page = (folder / "report" / "report.html").read_text()
    assert "Capacity against engine_replicas" in page
    # The folder can be the baseline of conditions and the side of a comparison.
    compared = invoke(f"compare {folder} {folder}")
    assert compared.exit_code == 0, compared.output
    assert f"`{EXAMPLE} × 4 (A)`" in compared.output
