"""Tests that downloads from Maven Central and npm are checked against the committed lists."""

import hashlib
import json
from pathlib import Path

import pytest

from racetrack.errors import SetupError
from racetrack.install import central, npm
from racetrack.install.lockfiles import MAVEN_PARTS
from racetrack.install.recipe import MavenPart, Site
from racetrack.install.versions import read_versions
from tests.install.conftest import said_by

VERSIONS = {"KAFKA_VERSION": "4.3.1"}


@pytest.fixture
def part(tmp_path: Path) -> MavenPart:
    lines = [f"{hashlib.sha256(of.encode()).hexdigest()}  {of}\n" for of in ("a.jar", "b.jar")]
    path = tmp_path / "kafka.sha256"
    path.write_text("# KAFKA_VERSION=4.3.1\n" + "".join(lines))
    return MavenPart("kafka", tmp_path / "pom.xml", path, tuple(VERSIONS))


def fetched(tmp_path: Path, **files: bytes) -> Path:
    folder = tmp_path / "fetched"
    folder.mkdir()
    for name, content in files.items():
        (folder / f"{name}.jar").write_bytes(content)
    return folder


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({"a": b"a.jar", "b": b"tampered"}, r"b\.jar: sha256 "),
        ({"a": b"a.jar"}, r"b\.jar: sha256 missing"),
        ({"a": b"a.jar", "b": b"b.jar", "c": b"c.jar"}, r"c\.jar: .* says None"),
    ],
)
def test_any_difference_is_refused_and_named(
    site: Site, part: MavenPart, tmp_path: Path, files: dict[str, bytes], named: str
) -> None:
    with pytest.raises(SetupError, match=named) as failure:
        central.check(site, part, VERSIONS, fetched(tmp_path, **files))
    assert "a.jar" not in str(failure.value)
    (tmp_path / "whole").mkdir()
    central.check(site, part, VERSIONS, fetched(tmp_path / "whole", a=b"a.jar", b=b"b.jar"))


def test_a_version_without_a_list_is_reported(site: Site, part: MavenPart, tmp_path: Path) -> None:
    central.check(site, part, {"KAFKA_VERSION": "5.0.0"}, fetched(tmp_path, z=b"z"))
    (line,) = said_by(site)
    assert "KAFKA_VERSION=5.0.0" in line


@pytest.mark.parametrize("part", MAVEN_PARTS, ids=[part.name for part in MAVEN_PARTS])
def test_the_committed_lists_are_for_the_versions_of_env(part: MavenPart) -> None:
    versions = read_versions(environ={})
    header, *lines = part.hashes.read_text().splitlines()
    assert header == central.lock_header({name: versions[name] for name in part.versions})
    assert lines


def test_every_locked_package_has_a_hash_and_no_address_of_a_mirror() -> None:
    lock, packages = (json.loads(file.read_text()) for file in (npm.LOCK, npm.PACKAGES))
    wanted = packages["devDependencies"]
    locked = {name: entry for name, entry in lock["packages"].items() if name}
    assert {f"node_modules/{name}" for name in wanted} <= locked.keys()
    for name, entry in locked.items():
        assert entry["integrity"].startswith("sha512-") and "resolved" not in entry, name
    assert packages["//"].keys() == wanted.keys()  # each has a reason
    assert all(version[0].isdigit() for version in wanted.values())
