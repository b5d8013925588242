"""The other engines in containers: verified after updates and deletions, and after trouble."""

import subprocess
from collections.abc import Callable

import pytest

from racetrack.engines import find_engine
from racetrack.settings import Settings
from tests.e2e.conftest import Door, check_views_after_a_kill, run_folder
from tests.run_json import read_run
from workloads.shop.catalogue import VIEWS

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(
    ("engine", "fault"), [("flink", "pause:engine@4s+2s"), ("pg", "kill:engine@4s")]
)
def test_every_view_is_right(
    contained: Settings, monkeypatch: pytest.MonkeyPatch, engine: str, fault: str
) -> None:
    monkeypatch.setenv("UPDATES_PER_SECOND", "30")
    monkeypatch.setenv("DELETES_PER_SECOND", "5")
    # Long enough for containers to be up again, and to tell of updates.
    door = Door("run_experiment.sh", engine, "500", "5", "25", "1.0", "--verify", "--fault", fault)
    door.wait(400)
    run = read_run(run_folder(door.output))
    assert run["runtime"] == "compose"
    check_views_after_a_kill(run, door)
    assert run["verified"]["views"].keys() == {view.name for view in VIEWS}
    assert fault.startswith("kill") or run["outcome"] == "ok"
    # The shop began with 1,000 purchases, and three a second came.
    assert run["verified"]["source_rows"]["purchases"] < 1_000
    services = find_engine(engine).services
    assert run["faults"]["done"][0]["services"] == list(services)
    assert run["measured"]["cpu_s"].keys() >= set(services)
    assert run["versions"].keys() >= set(services)


def test_flinks_own_client_is_in_its_container(
    contained: Settings, door: Callable[..., Door]
) -> None:
    """As `./race up` says it: a client that runs on the service's side."""
    up = door("race", "up", "flink")
    assert up.wait(400) == 0, up.output
    try:
        client = up.until("^SQL client: docker compose ")
        assert client.endswith(f"gateway --endpoint 127.0.0.1:{contained.flink_port}")
        argv = client.removeprefix("SQL client: ").split()
        argv.insert(argv.index("exec") + 1, "--no-TTY")
        shown = subprocess.run(
            argv, input="SHOW CATALOGS;\n", capture_output=True, text=True, timeout=60, check=False
        )
        assert "default_catalog" in shown.stdout, shown.stdout + shown.stderr
    finally:
        down = door("race", "down")
        assert down.wait() == 0, down.output
