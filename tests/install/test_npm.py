"""Tests of the lock file of npm packages."""

import json

from racetrack.install import npm


def test_every_locked_package_has_a_hash_and_no_address_of_a_mirror() -> None:
    lock, packages = (json.loads(file.read_text()) for file in (npm.LOCK, npm.PACKAGES))
    wanted = packages["devDependencies"]
    locked = {name: entry for name, entry in lock["packages"].items() if name}
    assert {f"node_modules/{name}" for name in wanted} <= locked.keys()
    for name, entry in locked.items():
        assert entry["integrity"].startswith("sha512-") and "resolved" not in entry, name
    assert packages["//"].keys() == wanted.keys()  # each has a reason
    assert all(version[0].isdigit() for version in wanted.values())
