"""Runs against a MySQL that the user provides, with TLS, a password and rights on own databases."""

from collections.abc import Iterator

import pytest

from tests.e2e.shared import Door, run_folder
from tests.secured_mysql import PASSWORD, SecuredMysql, secured_mysql
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def mysql() -> Iterator[SecuredMysql]:
    with secured_mysql() as running:
        yield running


@pytest.mark.parametrize("engine", ["pg", "dh"])
def test_a_run_is_verified_and_leaves_nothing(
    mysql: SecuredMysql, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in mysql.settings().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("UPDATES_PER_SECOND", "5")
    monkeypatch.setenv("DELETES_PER_SECOND", "1")
    door = Door("run_experiment.sh", engine, "500", "5", "5", "1.0", "--verify")
    door.until(r"^\[4/")
    assert len(mysql.databases()) == 1
    assert door.wait() == 0, door.output
    assert mysql.databases() == set()
    folder = run_folder(door.output)
    log = (folder / "stack/debezium.log").read_text()
    assert "obtain global read lock" not in log  # others use this server too
    files = [path for path in folder.rglob("*") if path.is_file()]
    text = door.output + "".join(path.read_text(errors="replace") for path in files)
    assert PASSWORD not in text
    assert "MySQL was not started by this run" in text


def test_a_killed_run_leaves_nothing(mysql: SecuredMysql, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in mysql.settings().items():
        monkeypatch.setenv(name, value)
    door = Door("run_experiment.sh", "cal", "500", "20", "5", "1.0")
    door.until(r"^\[4/")
    assert mysql.databases()
    door.process.kill()
    wait_until(lambda: not mysql.databases(), "clean-up", 30, every_s=0.2)
    assert door.wait() == -9
