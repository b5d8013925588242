"""Tests of a Spark that the user provides, as far as they need no running Spark."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from racetrack.config import Settings, load
from racetrack.engines import find_engine
from racetrack.engines.shared.tests import fakes
from racetrack.engines.spark.elsewhere import ELSEWHERE
from racetrack.errors import SetupError
from racetrack.stack.elsewhere import RUN_NAME

SPARK = find_engine("spark")
OTHERS = "racetrack_20260101_000000_1"


@pytest.fixture
def settings(tmp_path: Path) -> Iterator[Settings]:
    """Return settings with a folder and a master that accepts connections."""
    with socket.create_server(("127.0.0.1", 0)) as master:
        yield load(
            {
                "SPARK_MASTER_URL": f"spark://127.0.0.1:{master.getsockname()[1]}",
                "SPARK_SHARED_FOLDER": str(tmp_path),
            }
        )


def test_the_check_leaves_nothing(settings: Settings, tmp_path: Path) -> None:
    assert "reach the master" in ELSEWHERE.check(settings).operations
    assert list(tmp_path.iterdir()) == []


def test_each_failure_of_the_check_names_its_setting() -> None:
    with pytest.raises(SetupError) as refused:
        ELSEWHERE.check(load({"SPARK_MASTER_URL": "spark://127.0.0.1:1"}))
    master, folder = str(refused.value).splitlines()[1:]
    assert "SPARK_MASTER_URL: can't reach the master" in master
    assert "SPARK_SHARED_FOLDER: can't write to the folder" in folder


@pytest.mark.slow
def test_only_the_folder_of_the_run_is_removed(settings: Settings, tmp_path: Path) -> None:
    for name in (RUN_NAME, OTHERS):
        (tmp_path / name / "state").mkdir(parents=True)
    assert f"rm -r {tmp_path / OTHERS}" in "\n".join(SPARK.remarks(fakes.stack(settings)))
    removed, left = ELSEWHERE.remove(settings, RUN_NAME)
    assert removed == f"removed {tmp_path / RUN_NAME}"
    assert f"of the application {RUN_NAME}" in left
    assert ELSEWHERE.remove(settings, RUN_NAME) == ELSEWHERE.remove(settings, "") == ()
    assert [path.name for path in tmp_path.iterdir()] == [OTHERS]
