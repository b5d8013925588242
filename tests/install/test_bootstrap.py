"""Tests of bootstrap.sh, which runs before anything is installed: its messages and actions if
something is missing."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from racetrack.plugins import REPO

BOOTSTRAP = REPO / "racetrack" / "install" / "bootstrap.sh"
BASICS = "bash dirname env flock grep mkdir readlink rm sed tail tee"
# Stands for apt-cache where there is no package `a`.
CANDIDATES = '[[ $2 = a ]] && echo "  Candidate: (none)" || echo "  Candidate: 1.0"'


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a folder to be the whole PATH, with the programs of a bare system. Tests add more."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in BASICS.split():
        program = shutil.which(name)
        assert program
        (folder / name).symlink_to(program)
    return folder


def add(path: Path, name: str, script: str) -> None:
    (path / name).write_text(f"#!/bin/bash\n{script}\n")
    (path / name).chmod(0o755)


def call(path: Path, script: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a script in bash, after sourcing bootstrap.sh."""
    return subprocess.run(
        [path / "bash", "-c", f"set -euo pipefail; source {BOOTSTRAP}; {script}"],
        env={"PATH": str(path), "RACETRACK_CACHE": str(path.parent / "cache"), **environ},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def as_user(uid: int) -> str:
    """Return a command that replaces EUID in functions by this user id, because bash can't set
    EUID."""
    functions = "install_packages why_not_installed"
    return f'eval "$(declare -f {functions} | sed s/EUID/{uid}/)"; '


@pytest.mark.parametrize("has_sudo", [False, True])
def test_without_root_and_sudo_it_reports_what_root_must_run(path: Path, has_sudo: bool) -> None:
    add(path, "apt-get", "echo apt-get was called; exit 99")
    if has_sudo:
        add(path, "sudo", "exit 1")
    done = call(path, as_user(1000) + "with_set_up_lock install_packages 'pypy3 why' 'a|b why'")
    assert done.returncode == 3
    assert "apt-get install --no-install-recommends pypy3 a" in done.stderr
    assert "apt-get was called" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("programs", "uid", "runtime", "native"),
    [
        (("docker", "apt-get"), 1000, "auto", False),
        (("docker", "apt-get"), 0, "auto", True),
        (("docker",), 0, "native", True),
    ],
)
def test_with_docker_packages_that_can_not_be_installed_may_be_missing(
    path: Path, programs: tuple[str, ...], uid: int, runtime: str, native: bool
) -> None:
    for name in programs:
        add(path, name, "exit 99")
    wanted = path.parent / "wanted.txt"
    wanted.write_text("pypy3  command:pypy3  to run\n")
    script = f"APT_PACKAGES=({wanted}); SYSTEM_PYTHON=python3; install_what_is_missing; env"
    done = call(path, as_user(uid) + script, RUNTIME=runtime)
    assert (done.returncode == 3) == native
    assert ("RACETRACK_NOT_NATIVE=" in done.stdout) != native


@pytest.mark.parametrize(("uid", "prefix"), [(0, ""), (1000, "sudo ")])
def test_installs_the_alternative_that_there_is(path: Path, uid: int, prefix: str) -> None:
    calls = path.parent / "calls"
    add(path, "sudo", f'[[ $* = "-n true" ]] && exit; echo -n "sudo " >> {calls}; "$@"')
    add(path, "apt-get", f"echo apt-get $DEBIAN_FRONTEND $* >> {calls}")
    add(path, "apt-cache", CANDIDATES)
    add(path, "dpkg", f"echo dpkg $* >> {calls}")
    script = "with_set_up_lock install_packages 'pypy3 to run' 'a|b to try'"
    done = call(path, as_user(uid) + script)
    assert done.returncode == 0, done.stderr
    update, configure, install = calls.read_text().splitlines()
    assert update.startswith(f"{prefix}apt-get noninteractive") and update.endswith(" update")
    assert configure == f"{prefix}dpkg --configure -a"
    assert install.endswith("install --yes --no-install-recommends --no-upgrade pypy3 b")
    assert done.stderr.index("b: to try") < done.stderr.index("apt-get install")
    assert not (path.parent / "cache" / "apt-unfinished").exists()


def test_a_failure_of_apt_is_reported_and_resumed(path: Path) -> None:
    add(path, "apt-get", "echo 'E: Could not resolve the mirror' >&2; exit 100")
    add(path, "apt-cache", "exit 0")
    done = call(path, as_user(0) + "with_set_up_lock install_packages 'pypy3 to run'")
    assert done.returncode == 3
    assert "E: Could not resolve the mirror" in done.stderr
    assert "apt-get install --no-install-recommends pypy3" in done.stderr
    # Packages that apt may have left half-installed count as missing, even if programs exist.
    present = call(path, "is_present command:bash && echo there || echo missing")
    assert present.stdout == "missing\n"


def add_java(folder: Path, version: str) -> Path:
    """Make a Java of this version, which fails when it is started; return its program."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    add(program.parent, "java", "exit 99")
    (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return program


def chosen_java(path: Path, **environ: str) -> str:
    """Return the `java` on PATH after Java was looked for; an empty string if none fits."""
    script = f"JAVAS={path.parent}/jvm; find_java && type -P java"
    return call(path, script, **environ).stdout.strip()


@pytest.mark.parametrize(
    ("version", "fits"), [("1.8.0_412", False), ("11.0.2", False), ("21", True), ("25", False)]
)
def test_java_must_be_neither_too_old_nor_too_new(path: Path, version: str, fits: bool) -> None:
    java = add_java(path.parent / "jdk", version)
    (path / "java").symlink_to(java)
    assert chosen_java(path) == (str(java) if fits else "")


def test_nothing_to_do_touches_nothing(tmp_path: Path) -> None:
    # Everything is installed where these tests run: apt must not be called at all.
    add(tmp_path, "apt-get", "echo apt-get was called >&2; exit 99")
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": ""}
    script = f"set -euo pipefail; source {BOOTSTRAP}; bootstrap; echo $HARNESS_PYTHON"
    command = ["bash", "-c", script]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("/bin/python3\n")


def test_on_a_mac_a_python_is_all_that_is_asked_for(path: Path) -> None:
    for name in ("apt-get", "sudo", "dpkg", "flock", "getent"):  # programs of Debian
        (path / name).unlink(missing_ok=True)
        add(path, name, f"echo {name} was called >&2; exit 99")
    harness = path.parent / "harness"
    add(path, "python3", f'[[ $1 == -ISc ]] && echo "$0" || echo {harness}')
    done = call(path, "bootstrap; echo $HARNESS_PYTHON", OSTYPE="darwin24")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{harness}/bin/python3\n"
