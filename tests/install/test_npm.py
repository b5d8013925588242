"""Tests of the lock file of npm packages."""

import json

from racetrack.install import npm


def test_every_locked_package_has_a_hash_and_no_address_of_a_mirror() -> None:
    lock = json.loads(npm.LOCK.read_text())
    packages = {name: entry for name, entry in lock["packages"].items() if name}
    wanted = json.loads(npm.PACKAGES.read_text())["devDependencies"]
    assert {f"node_modules/{name}" for name in wanted} <= packages.keys()
    for name, entry in packages.items():
        assert entry["integrity"].startswith("sha512-"), name
        assert "resolved" not in entry, name


def test_every_package_has_a_reason_and_one_version() -> None:
    packages = json.loads(npm.PACKAGES.read_text())
    assert packages["//"].keys() == packages["devDependencies"].keys()
    assert all(version[0].isdigit() for version in packages["devDependencies"].values())
