"""`./race report`: where its files go, and folders that can't be used."""

from pathlib import Path

import pytest

from tests.cli.conftest import Ended, invoke


@pytest.mark.parametrize("count", [1, 2])
def test_files_go_into_the_only_folder_or_beside_the_first(ended: Ended, count: int) -> None:
    folder = ended("ok")
    result = invoke(f"report {' '.join([str(folder)] * count)}")
    assert result.exit_code == 0, result.output
    page = Path(result.output.splitlines()[-1])
    assert page.is_file()
    if count == 1:
        assert page == folder / "report" / "report.html"
    else:
        assert page.parent.parent == folder.parent
        assert page.parent.name.endswith("_UTC_report")


def test_files_go_where_out_says(ended: Ended, tmp_path: Path) -> None:
    assert invoke(f"report {ended('ok')} --out {tmp_path / 'there'}").exit_code == 0
    assert {path.name for path in (tmp_path / "there").iterdir()} >= {"report.html", "report.csv"}


def test_a_missing_folder_and_one_that_can_not_be_written_are_refused_before_the_work(
    ended: Ended, tmp_path: Path
) -> None:
    assert invoke(f"report {tmp_path / 'nowhere'}").exit_code == 2
    (tmp_path / "file").touch()
    folder = ended("ok")
    for out in (tmp_path / "file" / "below", Path("/proc/report")):
        result = invoke(f"report {folder} --out {out}")
        assert result.exit_code == 2
        assert f"The report can't be written to {out}" in result.output
        assert "kept up" not in result.output
