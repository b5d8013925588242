"""Tests of the images that `./race images` builds: their content, and that they can be pushed."""

import subprocess
from pathlib import Path

import httpx
import pytest

from racetrack import images
from racetrack.errors import SetupError
from racetrack.images.build import push
from tests.image_registry import image_registry

pytestmark = pytest.mark.e2e


def docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module", autouse=True)
def _built(airgap_images: None) -> None:
    """Build the images for all tests here."""


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
