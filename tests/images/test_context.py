"""What a build is given, and when that is something else."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from racetrack import images
from racetrack.images import contexts, pip_config
from racetrack.images.context import BuildContext
from racetrack.settings import REPO, Settings, load


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / "package/__pycache__").mkdir(parents=True)
    (tmp_path / "package/a.py").write_text("a = 1\n")
    (tmp_path / "package/__pycache__/a.pyc").write_text("compiled")
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    (tmp_path / "kafka-4.3.1-abc/made").mkdir(parents=True)
    (tmp_path / "kafka-4.3.1-abc/made/broker.jsa").write_text("of this machine")
    (tmp_path / "kafka-4.3.1-abc/kafka.jar").write_text("jar")
    return tmp_path


def context(repository: Path, pip: str = "") -> BuildContext:
    made = BuildContext(repository / "Dockerfile")
    made.files(repository, ["package"], "code/")
    made.part("parts/kafka", repository / "kafka-4.3.1-abc")
    made.text("pip.conf", pip, counts=False)
    return made


def test_it_holds_what_was_added_and_nothing_of_this_machine(repository: Path) -> None:
    with context(repository).tar() as file, tarfile.open(fileobj=file) as archive:
        names = {member.name for member in archive if member.isfile()}
        owners = {member.uid for member in archive}
    assert names == {"Dockerfile", "code/package/a.py", "parts/kafka/kafka.jar", "pip.conf"}
    assert owners == {0}


def test_the_digest_is_of_what_decides(repository: Path) -> None:
    before = context(repository).digest
    assert context(repository, pip="another index").digest == before
    (repository / "package/a.py").write_text("a = 2\n")
    assert context(repository).digest != before


def test_the_digest_changes_with_a_part_s_version(repository: Path) -> None:
    before = context(repository).digest
    (repository / "kafka-4.3.1-abc").rename(repository / "kafka-4.4.0-def")
    made = BuildContext(repository / "Dockerfile")
    made.files(repository, ["package"], "code/")
    made.part("parts/kafka", repository / "kafka-4.4.0-def")
    assert made.digest != before


def test_pip_is_told_where_its_packages_are_but_no_path_of_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed = (
        ":env:.find-links='/opt/wheels'\n:env:.index-url='https://b.example/simple'\n"
        "global.cert='/home/me/ca.pem'\nglobal.index-url='https://a.example/simple'\n"
    )
    monkeypatch.setattr(pip_config, "_settings", lambda: pip_config.parse(listed))
    assert pip_config.for_build() == (
        "[global]\n"
        "cert = /etc/ssl/certs/ca-certificates.crt\n"
        "index-url = https://b.example/simple\n"
    )


def test_no_secret_gets_into_a_build() -> None:
    settings = load()
    told = contexts.prepare_env(settings)
    for name in Settings.model_fields:
        value = getattr(settings, name)
        if hasattr(value, "get_secret_value") and value.get_secret_value():
            assert f"{name.upper()}={value.get_secret_value()}\n" not in told
    assert "BIND_ADDRESS=127.0.0.1\n" in told


def test_the_override_names_the_images_that_are_built() -> None:
    override = (REPO / "docker-compose.airgap.yml").read_text()
    for name in set(images.NAMES) - {"base", "serve"}:
        assert f"image: {images.image_name(name)}\n" in override


def test_the_code_in_an_image_is_whole(tmp_path: Path) -> None:
    made = BuildContext(REPO / "images/service.Dockerfile")
    contexts.Contexts(load(), {}, {})._add_code(made)
    with made.tar() as file, tarfile.open(fileobj=file) as archive:
        archive.extractall(tmp_path, filter="data")
    names = sorted({run for service in images.SERVICES for run in service.runs} | {"deephaven"})
    wanted = (
        "from racetrack import workload\nfrom racetrack.stack.native import serve, service\n"
        f"workload.find_workload({load().workload!r})\n"
    )
    wanted += "".join(f"service.find_service({name!r})\n" for name in names)
    environment = {"PYTHONPATH": str(tmp_path / "code"), "PATH": os.environ["PATH"]}
    asked = [sys.executable, "-c", wanted]
    done = subprocess.run(
        asked, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_generator_in_an_image_has_its_workload(tmp_path: Path) -> None:
    given = contexts.Contexts(load(), {}, dict.fromkeys(("LIBRDKAFKA_VERSION",), "1"))
    given.digests["base"] = "a digest"
    with given._loadgen().tar() as file, tarfile.open(fileobj=file) as archive:
        archive.extractall(tmp_path, filter="data")
    dockerfile = (tmp_path / "Dockerfile").read_text()
    copied = re.findall(r"^COPY (\w+) /app/\1$", dockerfile, re.MULTILINE)
    assert sorted(copied) == ["loadgen", "workloads"]
    asked = "from loadgen import config, workload\n"
    asked += "read = config.Reader({'MYSQL_PASSWORD': 'x'})\n"
    asked += "print(workload.make(config.load(read._env), read).name)"
    (tmp_path / "app").mkdir()
    for name in copied:
        shutil.move(tmp_path / name, tmp_path / "app" / name)
    done = subprocess.run(
        [sys.executable, "-c", asked],
        cwd=tmp_path / "app",
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["shop"], done.stderr
    assert not list((tmp_path / "app").rglob("test_*.py"))
