"""What comes from PyPI is checked by hash, and works from the folder it ends up in."""

import hashlib
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from racetrack.errors import SetupError
from racetrack.install import pypi
from racetrack.install.lockfiles import PYPI_LOCKS
from racetrack.install.recipe import Site
from racetrack.install.versions import REPO

pytestmark = pytest.mark.slow


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for the only index, with one package that has one command."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    info = "tiny-1.0.dist-info"
    with zipfile.ZipFile(shelf / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tiny.py", "def main():\n    print('tiny works')\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/entry_points.txt", "[console_scripts]\ntiny = tiny:main\n")
        wheel.writestr(f"{info}/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    return shelf


def lock_for(shelf: Path, digest: str) -> Path:
    lock = shelf / "tiny.lock"
    lock.write_text(f"tiny==1.0 --hash=sha256:{digest}\n")
    return lock


def test_packages_are_checked_by_hash_and_work_after_the_move(site: Site, shelf: Path) -> None:
    pypi.make_venv(site, Path(sys.executable))

    promised = "0" * 64
    with pytest.raises(SetupError, match="DO NOT MATCH THE HASHES") as failure:
        pypi.install(site, lock_for(shelf, promised))
    assert "tiny==1.0" in str(failure.value)
    assert promised in str(failure.value)
    assert site.say.__self__ == []  # type: ignore[attr-defined]  # it was not tried again
    assert not list(site.folder.rglob("tiny*"))

    (wheel,) = shelf.glob("*.whl")
    pypi.install(site, lock_for(shelf, hashlib.sha256(wheel.read_bytes()).hexdigest()))
    pypi.move_paths(site.folder, site.final)
    site.folder.rename(site.final)
    tiny = subprocess.run([site.final / "bin" / "tiny"], capture_output=True, text=True, check=True)
    assert tiny.stdout == "tiny works\n"


def test_what_a_lock_pins() -> None:
    assert pypi.pinned(pypi.LIBRDKAFKA_LOCK, "confluent-kafka").startswith("2.")
    with pytest.raises(SetupError, match="does not pin no-such"):
        pypi.pinned(pypi.LIBRDKAFKA_LOCK, "no-such")


def test_the_lock_holds_every_dependency_of_the_project() -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    for requirement in asked:
        name = re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-")
        assert pypi.pinned(pypi.HARNESS_LOCK, name), "see the lock's first lines"


@pytest.mark.parametrize("lock", [lock.file for lock in PYPI_LOCKS], ids=str)
def test_every_locked_package_has_hashes_and_no_trace_of_its_making(lock: Path) -> None:
    text = lock.read_text()
    assert "python3 -m racetrack.install.lockfiles" in text.splitlines()[1]
    assert "://" not in text
    assert str(REPO) not in text
    packages = re.split(r"\n(?=\S+==)", text)[1:]
    assert packages
    assert [p.split()[0] for p in packages if "--hash=sha256:" not in p] == []
