"""Tests of the images that `./race images` builds: their content, and each running alone."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from racetrack import clock, images
from racetrack.config import REPO
from racetrack.errors import SetupError
from racetrack.images.build import push
from tests.docker_engine import Engine
from tests.image_registry import image_registry

pytestmark = pytest.mark.e2e

UP_WITHIN_S = 180.0


def docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module", autouse=True)
def _built(airgap_images: None) -> None:
    """Build the images for all tests here."""


def test_a_second_call_builds_nothing(docker_engine: Engine) -> None:
    done = subprocess.run(
        [str(REPO / "race"), "images"], capture_output=True, text=True, check=True
    )
    assert "built in" not in done.stdout
    for name in images.NAMES:
        assert images.image_name(name) in done.stdout


@pytest.mark.parametrize("name", images.RUN)
def test_how_this_machine_reaches_pypi_is_not_in_an_image(name: str) -> None:
    image = images.image_name(name)
    looked = docker(
        *f"run --rm --network none --entrypoint sh {image} -c".split(),
        "ls /opt/racetrack /etc/pip.conf 2>/dev/null; grep -c BEGIN /etc/ssl/certs/*.crt",
    )
    assert "pip.conf" not in looked
    assert "prepare.env" not in looked
    assert "ca-certificates.crt\n" not in looked.split(":")[0]
    history = docker("history", "--no-trunc", "--format", "{{.CreatedBy}}", image)
    assert "http_proxy" not in history.lower()


def test_an_image_is_pushed_and_its_digest_reported(tmp_path: Path) -> None:
    said: list[str] = []
    repository, tag = images.image_name("serve").split(":")
    with image_registry(tmp_path) as registry:
        push(f"{registry}/team/", ["serve"], said.append)
        answer = httpx.get(
            f"http://{registry}/v2/team/{repository}/manifests/{tag}",
            headers={"Accept": "application/vnd.docker.distribution.manifest.v2+json"},
        )
    digest = answer.headers["Docker-Content-Digest"]
    assert said == [f"{registry}/team/{repository}:{tag}@{digest}: pushed"]
    with pytest.raises(SetupError, match="could not be pushed"):
        push(f"{registry}/team/", ["serve"], said.append)
    docker("rmi", f"{registry}/team/{repository}:{tag}")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """Run only the image that replaces Redpanda; return its container, and the address of
    its registry."""
    (tmp_path / "env").write_text(
        "BIND_ADDRESS=0.0.0.0\nSTACK_NAME=in-a-test\nKAFKA_PORT=9092\nSCHEMA_REGISTRY_PORT=8081\n"
    )
    container = docker(
        "run",
        "--detach",
        "--publish=127.0.0.1::8081",
        f"--env-file={REPO / '.env'}",
        f"--env-file={tmp_path / 'env'}",
        "--tmpfs=/var/lib/racetrack:exec,mode=0711,size=1g",
        images.image_name("redpanda"),
    )
    try:
        yield container, docker("port", container, "8081/tcp")
    finally:
        docker("rm", "--force", container)


def test_the_registry_answers_at_the_root_and_by_apicurio_s_paths(broker: tuple[str, str]) -> None:
    container, address = broker
    ready = ["docker", "exec", container, "test", "-e", "/var/lib/racetrack/ready"]

    def is_ready() -> bool:
        return subprocess.run(ready, check=False, capture_output=True).returncode == 0

    assert clock.wait_until(is_ready, UP_WITHIN_S, 0.2), docker("logs", container)
    with httpx.Client(base_url=f"http://{address}", timeout=10) as registry:
        for path in ("/subjects", "/apis/ccompat/v7/subjects"):
            assert registry.get(path).json() == []
        schema = {"schema": '{"type": "string"}'}
        number = registry.post("/subjects/a%2Fb-value/versions", json=schema).json()["id"]
        assert registry.get("/subjects").json() == ["a/b-value"]
        assert registry.get(f"/schemas/ids/{number}").json()["schema"] == schema["schema"]
        assert registry.get("/apis/registry/v2/search/artifacts").json()["count"] == 1
    docker("stop", "--time", "10", container)
