"""Tests of parts from Debian's packages: which package is chosen, from which source, and that
downloads are unchanged."""

from pathlib import Path

import pytest

from racetrack.install import apt, debian

UBUNTU = 'NAME="Ubuntu"\nVERSION_CODENAME=noble\nID=ubuntu\nID_LIKE=debian\n'
DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_CODENAME=bookworm\nID=debian\n'


@pytest.mark.parametrize(("text", "suite"), [(DEBIAN, "sid"), (UBUNTU, "noble")])
def test_debian_has_it_in_sid_and_ubuntu_in_its_own_archive(
    text: str, suite: str, tmp_path: Path
) -> None:
    (tmp_path / "os-release").write_text(text)
    assert debian.mysql(tmp_path / "os-release").label == suite


@pytest.mark.parametrize("libraries", ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"])
def test_an_unpacked_program_runs_with_what_is_beside_it(libraries: str, tmp_path: Path) -> None:
    loader = tmp_path / libraries / "ld-linux-x86-64.so.2"
    (tmp_path / "usr/lib/x86_64-linux-gnu").mkdir(parents=True)
    loader.parent.mkdir(parents=True, exist_ok=True)
    loader.touch()
    command = apt.own_loader(tmp_path, "usr/sbin/nginx", "usr/lib/not-there")
    assert command[0] == str(loader)
    assert str(loader.parent) in command[2].split(":")
    assert "not-there" not in command[2]
    assert command[3] == str(tmp_path / "usr/sbin/nginx")
