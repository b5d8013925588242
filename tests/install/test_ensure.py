"""Tests that an installed part exists completely or not at all, even if its set-up is
interrupted."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from racetrack.errors import SetupError
from racetrack.install.ensure import ensure_recipes
from racetrack.install.recipe import Recipe, Site
from racetrack.integrity import HASHES
from tests.install.conftest import small_recipe
from tests.waiting import wait_until

WITHIN_S = 10.0

# A set-up in its own process. Building its part takes as long as the command in its argument.
SETUP = """
import sys
from racetrack.install.ensure import ensure_recipes
from racetrack.install.recipe import Recipe

def build(site):
    (site.folder / "half").touch()
    site.run("bash", "-c", sys.argv[1], doing="taking its time")
    return "1.0"

recipe = Recipe("small", "1.0", "for tests", 0, (), (b"1",), build)
ensure_recipes([recipe], lambda line: print(line, flush=True))
"""


def whole(site: Site) -> str:
    (site.folder / "content").write_text("whole")
    return "1.0-really"


def set_up(command: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", SETUP, command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for(path: Path) -> None:
    wait_until(path.exists, str(path), WITHIN_S)


def runs(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_installs_once_and_records_the_version(cache_root: Path) -> None:
    lines: list[str] = []
    folders = ensure_recipes([small_recipe(whole)], lines.append)
    assert (folders["small"] / "content").read_text() == "whole"
    assert (folders["small"] / "VERSION").read_text() == "1.0-really\n"
    assert folders["small"].parent == cache_root / "parts"

    def never(site: Site) -> str:
        raise AssertionError("built again")

    lines.clear()
    assert ensure_recipes([small_recipe(never)], lines.append) == folders
    assert lines == []
    other = ensure_recipes([small_recipe(whole, content=b"2")], print)["small"]
    assert other != folders["small"] and other.is_dir() and folders["small"].is_dir()


def test_what_fails_leaves_nothing_and_keeps_the_others(cache_root: Path) -> None:
    def half(site: Site) -> str:
        (site.folder / "half").touch()
        raise SetupError("small: the archive is not there")

    other = Recipe("other", "1", "for tests", 0, (), (), whole)
    with pytest.raises(SetupError, match=r"the archive is not there[\s\S]*use Docker"):
        ensure_recipes([small_recipe(half), other], print)
    assert [path.name for path in (cache_root / "parts").iterdir()] == [other.folder_name]


@pytest.mark.slow
def test_a_killed_set_up_is_mended_by_the_next_which_waits_for_what_outlives_it(
    cache_root: Path,
) -> None:
    # Otherwise, the killed set-up's command and the new set-up would write to the same downloads.
    started, ended = cache_root / "started", cache_root / "ended"
    killed = set_up(f"touch {started}; sleep 0.3; touch {ended}")
    wait_for(started)
    killed.kill()
    killed.wait()
    lines: list[str] = []
    folder = ensure_recipes([small_recipe(whole)], lines.append)["small"]
    assert ended.exists()
    assert f"pid {killed.pid}" in lines[0]
    assert sorted(path.name for path in folder.iterdir()) == [HASHES, "VERSION", "content"]
    assert any("interrupted set-up" in line for line in lines), lines
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_two_set_ups_wait_for_each_other_and_say_so(cache_root: Path) -> None:
    go_on = cache_root / "go-on"
    first = set_up(f"until [ -e {go_on} ]; do sleep 0.02; done")
    wait_for(cache_root / "parts" / f".tmp-{small_recipe(whole).folder_name}" / "half")
    second = set_up("exit 1")  # would fail if it also built the part
    assert second.stdout
    line = second.stdout.readline()
    assert "another set-up is running" in line and f"pid {first.pid}" in line
    go_on.touch()
    assert (first.wait(WITHIN_S), second.wait(WITHIN_S)) == (0, 0)


def test_ctrl_c_ends_what_was_started_and_leaves_nothing(cache_root: Path) -> None:
    pids = cache_root / "pids"
    setup = set_up(f"sleep 60 & echo $! $$ > {pids}.new; mv {pids}.new {pids}; wait")
    wait_for(pids)
    setup.send_signal(signal.SIGINT)
    assert setup.wait(WITHIN_S) != 0
    left = [int(pid) for pid in pids.read_text().split()]
    wait_until(lambda: not any(map(runs, left)), f"end of {left}", WITHIN_S)
    assert list((cache_root / "parts").iterdir()) == []
