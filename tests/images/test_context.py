"""Tests of the files that the build of an image gets, and of changes in them."""

import os
import shlex
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from racetrack import images
from racetrack.config import REPO, every_setting, load
from racetrack.images import contexts
from racetrack.images.context import BuildContext
from tests import compose_files

SHARED = "shared"  # the folder that engines share
PYTHON = "python -m "
PROGRAMS = [image.name for image in images.IMAGES.values() if image.command.startswith(PYTHON)]
RUN_SERVICES = [image.name for image in images.IMAGES.values() if image.runs]


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    for name in (
        "package/a.py",
        "package/__pycache__/a.pyc",
        "Dockerfile",
        "kafka-4.3.1-abc/made/broker.jsa",  # of this machine
        "kafka-4.3.1-abc/kafka.jar",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def context(repository: Path, pip: str = "", part: str = "kafka-4.3.1-abc") -> BuildContext:
    made = BuildContext(repository / "Dockerfile")
    made.files(repository, ["package"], "code/")
    made.part("parts/kafka", repository / part)
    made.text("pip.conf", pip, counts=False)
    return made


def test_it_holds_what_was_added_and_nothing_of_this_machine(repository: Path) -> None:
    with context(repository).tar() as file, tarfile.open(fileobj=file) as archive:
        names = {member.name for member in archive if member.isfile()}
        owners = {member.uid for member in archive}
    assert names == {"Dockerfile", "code/package/a.py", "parts/kafka/kafka.jar", "pip.conf"}
    assert owners == {0}


def test_the_digest_is_of_the_files_and_the_versions_of_parts(repository: Path) -> None:
    before = context(repository).digest
    assert context(repository, pip="another index").digest == before
    part = repository / "kafka-4.3.1-abc"
    other = part.rename(repository / "kafka-4.4.0-def")
    assert context(repository, part=other.name).digest != before
    other.rename(part)
    (repository / "package/a.py").write_text("a = 2\n")
    assert context(repository).digest != before


def test_a_build_has_valid_settings_and_no_secret() -> None:
    settings = load()
    found = contexts.prepare_env(settings)
    for name in every_setting():
        value = getattr(settings, name)
        if hasattr(value, "get_secret_value") and value.get_secret_value():
            assert f"{name.upper()}={value.get_secret_value()}\n" not in found
    given = dict(word.split("=", 1) for word in shlex.split(found))
    load({name: value for name, value in given.items() if name.lower() in every_setting()})
    assert (given["BIND_ADDRESS"], given["POSTGRES_URL"]) == ("127.0.0.1", "")


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN_SERVICES)
def test_the_code_in_an_image_is_whole_and_its_container_gets_its_settings(
    name: str, tmp_path: Path
) -> None:
    code = code_of(name, tmp_path)
    found = {file.parent.name for file in code.glob("racetrack/engines/*/*.py")} - {SHARED}
    assert found == set(engine_of(name))  # no engine but its own
    program = "from racetrack.config import load\n"
    program += "from racetrack.workloads.contract import find_workload\n"
    program += "from racetrack.stack import service\nfrom racetrack.stack.native import serve\n"
    program += "find_workload(load().workload)\n"
    program += "".join(f"service.find_service({each!r})\n" for each in images.IMAGES[name].runs)
    environment = compose_files.service(name, *compose_files.AIRGAP)["environment"]
    run_in(code, program, environment)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_in_an_image_is_whole(name: str, tmp_path: Path) -> None:
    made = BuildContext(REPO / "images/program.Dockerfile")
    made.files(REPO, images.IMAGES[name].files, "code/")
    module = images.IMAGES[name].command.removeprefix(PYTHON)
    run_in(unpacked(made, tmp_path), f"import {module}", {})


def engine_of(image: str) -> list[str]:
    """Return the engine whose folder defines an image, as a list that is empty if there is none."""
    brought = images.OF_ENGINES.items()
    return [engine for engine, of in brought if image in {each.name for each in of}]


def code_of(image: str, folder: Path) -> Path:
    """Unpack the code that an image gets; return the folder."""
    made = BuildContext(REPO / "images/service.Dockerfile")
    contexts.Contexts(load(), {}, {}).add_code(made, "".join(engine_of(image)))
    made.files(REPO, images.IMAGES[image].files, "code/")
    return unpacked(made, folder)


def unpacked(made: BuildContext, folder: Path) -> Path:
    """Unpack the files for a build; return the folder of its code."""
    with made.tar() as file, tarfile.open(fileobj=file) as archive:
        archive.extractall(folder, filter="data")
    return folder / "code"


def run_in(code: Path, program: str, variables: Mapping[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=code.parent,
        env={**variables, "PYTHONPATH": str(code), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
