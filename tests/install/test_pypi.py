"""Tests that packages from PyPI are checked by hash, downloaded by pip's configuration, and
usable."""

import hashlib
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from racetrack.errors import SetupError
from racetrack.install import cache, pip, pypi
from racetrack.install.ensure import ensure_recipes
from racetrack.install.lockfiles import PYPI_LOCKS
from racetrack.install.recipe import Site
from racetrack.plugins import REPO
from tests.install.conftest import said_by

LISTED = """\
:env:.find-links='https://links.example/\\nhere not-here'
:env:.index-url='https://b.example/simple'
download.retries='9'
global.cert='/home/me/ca.pem'
global.index-url='https://a.example/simple'
global.timeout='10'
install.timeout='20'
"""


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """A folder with one package that has one command."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    info = "tiny-1.0.dist-info"
    with zipfile.ZipFile(shelf / "tiny-1.0-py3-none-any.whl", "w") as wheel:
        for name, text in {
            "tiny/__init__.py": "def main():\n    print('tiny works')\n",
            "tiny/tests/__init__.py": "import tiny\n",
            f"{info}/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            f"{info}/entry_points.txt": "[console_scripts]\ntiny = tiny:main\n",
            f"{info}/RECORD": "",
        }.items():
            wheel.writestr(name, text)
    return shelf


@pytest.fixture
def python_site(site: Site, shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    """Return a site with the real uv. pip's configuration names no index but the shelf, and a
    missing folder, which pip ignores."""
    uv = ensure_recipes([pypi.uv()], print, keep_packages=True)["uv"]
    configuration = tmp_path / "pip.conf"
    configuration.write_text(
        f"[install]\nno-index = yes\nfind-links =\n    /missing\n    {shelf}\n"
    )
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(configuration))
    monkeypatch.setenv("RACETRACK_CACHE", str(tmp_path / "cache"))
    pypi.pip_settings.cache_clear()
    return replace(site, tools={"uv": uv})


def lock_for(shelf: Path, digest: str) -> Path:
    lock = shelf / "tiny.lock"
    lock.write_text(f"tiny==1.0 --hash=sha256:{digest}\n")
    return lock


@pytest.mark.slow
def test_packages_are_checked_by_hash_and_work_after_the_move(
    python_site: Site, shelf: Path
) -> None:
    site, promised = python_site, "0" * 64
    with pytest.raises(SetupError, match="Hash mismatch") as failure:
        pypi.environment(site, Path(sys.executable), lock_for(shelf, promised))
    assert "tiny==1.0" in str(failure.value)
    assert promised in str(failure.value)
    assert said_by(site) == []  # it was not tried again
    assert not list(site.folder.rglob("tiny*"))

    (wheel,) = shelf.glob("*.whl")
    lock = lock_for(shelf, hashlib.sha256(wheel.read_bytes()).hexdigest())
    version = pypi.environment(site, pip.base_python(), lock)
    assert version.startswith("CPython 3.")
    site.folder.rename(site.final)
    tiny = subprocess.run([site.final / "bin" / "tiny"], capture_output=True, text=True, check=True)
    assert tiny.stdout == "tiny works\n"
    # Files that programs never read are removed; the others are hard links to those in the cache.
    (package,) = site.final.glob("lib/*/site-packages/tiny")
    assert {path.name for path in package.iterdir() if path.is_dir()} <= {"__pycache__"}
    assert (package / "__init__.py").stat().st_nlink == 2
    assert list(cache.packages().rglob("tiny/tests"))


A, B = "https://a.example", "https://b.example"


@pytest.mark.parametrize(
    ("settings", "environ", "expected"),
    [
        (
            {"index-url": A, "extra-index-url": f"{A}\n{B}"},
            {},
            {
                "UV_DEFAULT_INDEX": A,
                "UV_INDEX": f"{A} {B}",
                "UV_INDEX_STRATEGY": "unsafe-best-match",
            },
        ),
        (
            {"find-links": f"{A}/\n/missing\n/usr file:///usr file:///missing"},
            {},
            {"UV_FIND_LINKS": f"{A}/,/usr,file:///usr"},
        ),
        (
            {"trusted-host": "a\nb", "proxy": "http://proxy:1", "timeout": "180", "no-index": "0"},
            {"http_proxy": "http://other:2"},
            {
                "UV_INSECURE_HOST": "a b",
                "HTTPS_PROXY": "http://proxy:1",
                "UV_HTTP_TIMEOUT": "180",
                "UV_SYSTEM_CERTS": "true",
                "UV_NO_INDEX": None,
            },
        ),
        ({"cert": "/ca.pem"}, {}, {"SSL_CERT_FILE": "/ca.pem", "UV_SYSTEM_CERTS": None}),
        # Of the user's own variables for uv, only those for reaching packages are kept.
        (
            {"index-url": A},
            {"UV_DEFAULT_INDEX": "https://uv.example", "UV_SYSTEM_PYTHON": "1"},
            {"UV_DEFAULT_INDEX": "https://uv.example", "UV_SYSTEM_PYTHON": None},
        ),
    ],
)
def test_uv_gets_pips_configuration(
    settings: Mapping[str, str], environ: Mapping[str, str], expected: Mapping[str, str | None]
) -> None:
    found = pip.uv_environment(settings, environ)
    assert {name: found.get(name) for name in expected} == expected


def test_of_pips_options_the_environment_wins_then_those_of_install() -> None:
    assert pip.parse(LISTED) == {
        "find-links": "https://links.example/\nhere not-here",
        "index-url": "https://b.example/simple",
        "cert": "/home/me/ca.pem",
        "timeout": "20",
    }


@pytest.mark.slow
def test_pip_installs_whatever_else_the_user_has_configured(
    python_site: Site, shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = tmp_path / "hostile.conf"
    configuration.write_text(
        "[global]\nuser = true\nrequire-virtualenv = true\ndry-run = true\nquiet = 2\n"
        "python = /missing\nconstraint = /missing\n"
        f"[install]\nno-binary = :all:\nprefix = /missing\nno-index = true\nfind-links = {shelf}\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(configuration))
    for option in ("USER", "REQUIRE_VIRTUALENV", "DRY_RUN"):
        monkeypatch.setenv(f"PIP_{option}", "1")
    install = (*pip.command(), "install", *pypi.PIP_OPTIONS, "--target", python_site.folder)
    environment = pip.install_environment(pip.settings())
    python_site.run(*install, "tiny", doing="installing tiny", env=environment)
    assert (python_site.folder / "tiny" / "__init__.py").exists()


@pytest.mark.slow
def test_pips_configuration_is_what_pip_itself_reports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = tmp_path / "pip.conf"
    configuration.write_text(f"[global]\nindex-url = {A}/%20\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(configuration))
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    monkeypatch.setenv("PIP_RETRIES", "7")
    found = pip.settings()
    assert (found["index-url"], found["retries"]) == (f"{A}/%20", "7")
    configuration.write_text("no section\n")
    with pytest.raises(SetupError, match=r"pip\.conf"):
        pip.settings()


def test_the_locks_hold_every_dependency_and_tests_run_with_those_of_the_harness() -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    own = project["dependencies"]
    every = {
        pypi.HARNESS_LOCK: own,
        pypi.TESTS_LOCK: [*own, *project["optional-dependencies"]["dev"]],
    }
    for lock, requirements in every.items():
        for requirement in requirements:
            name = re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-")
            assert pypi.pinned(lock, name), "see the lock's first lines"
    harness, tests = (set(re.findall(r"^\S+==[^\s;\\]+", of.read_text(), re.M)) for of in every)
    assert harness < tests


@pytest.mark.parametrize("lock", [lock.file for lock in PYPI_LOCKS], ids=str)
def test_every_locked_package_has_hashes_and_no_trace_of_its_making(lock: Path) -> None:
    text = lock.read_text()
    assert "python3 -m racetrack.install.lockfiles" in text.splitlines()[1]
    assert "://" not in text
    assert str(REPO) not in text
    packages = re.split(r"\n(?=\S+==)", text)[1:]
    assert packages
    assert [p.split()[0] for p in packages if "--hash=sha256:" not in p] == []
