"""`./race scale`: arguments that are refused, and the report on its folder."""

import json
from pathlib import Path

import pytest

from tests.analysis.test_scaling import ALL, FAILED, HELD, record
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


def test_the_report_has_the_sentence_the_table_and_a_chart(tmp_path: Path) -> None:
    folder = tmp_path / "2026_UTC_flink_scale"
    folder.mkdir()
    held = {1: [FAILED] * 2, 2: [FAILED] * 2, 4: [HELD] * 2}
    (folder / "scale.json").write_text(record(ALL, held).model_dump_json())
    exported = tmp_path / "all.json"
    result = invoke(f"report {folder} --json {exported}")
    assert result.exit_code == 0, result.output
    assert "`flink`: 4 replicas hold 3.99 ± 0.03 × what one holds; 2 hold" in result.output
    assert "yes, in 2 of 2 runs" in result.output
    page = (folder / "report" / "report.html").read_text()
    assert "4 replicas are the fewest tried that hold 50,000/s" in page
    assert "Capacity of flink against replicas" in page
    records = json.loads(exported.read_text())["records"]
    assert {one["replicas"] for one in records} == {1, 2, 4}
    # The folder can be the baseline of conditions and the side of a comparison.
    compared = invoke(f"compare {folder} {folder}")
    assert compared.exit_code == 0, compared.output
    assert "`flink × 4 (A)`" in compared.output
