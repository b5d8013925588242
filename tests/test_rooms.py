"""Who may know whom stands in pyproject.toml, and holds."""

from importlinter.cli import lint_imports

from racetrack.settings import REPO


def test_no_import_runs_upward() -> None:
    assert lint_imports(config_filename=str(REPO / "pyproject.toml"), no_cache=True) == 0
