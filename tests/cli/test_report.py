"""`./race report`: where its files go."""

from pathlib import Path

from tests.cli.conftest import Ended, invoke


def test_files_go_into_the_only_folder_beside_the_first_or_where_out_says(
    ended: Ended, tmp_path: Path
) -> None:
    def page(typed: str) -> Path:
        result = invoke(f"report {typed}")
        assert result.exit_code == 0, result.output
        return Path(result.output.splitlines()[-1])

    folder = ended("ok")
    assert page(str(folder)) == folder / "report" / "report.html"
    beside = page(f"{folder} {folder}")
    assert beside.is_file() and beside.parent.parent == folder.parent
    assert beside.parent.name.endswith("_UTC_report")
    assert page(f"{folder} --out {tmp_path / 'there'}").parent == tmp_path / "there"
    assert (tmp_path / "there" / "report.csv").is_file()
