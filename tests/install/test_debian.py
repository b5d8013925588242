"""Packages of Debian: which of them, from where, and that they are still what was downloaded."""

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


@pytest.mark.parametrize(
    ("package", "needed"),
    [
        *[("mysql-server-core", True), ("libc6", True), ("libssl3t64", True), ("zlib1g", True)],
        *[("perl-base", False), ("libperl5.40", False), ("debconf", False), ("dpkg", False)],
    ],
)
def test_what_the_server_links_to_and_no_more(package: str, needed: bool) -> None:
    assert bool(debian.MYSQL_NEEDS.match(package)) == needed


@pytest.mark.parametrize(
    ("package", "needed"),
    [
        *[("nginx", True), ("nginx-core", True), ("libc6", True), ("libpcre2-8-0", True)],
        *[("libssl3", True), ("libssl3t64", True), ("nginx-common", False), ("iproute2", False)],
    ],
)
def test_what_nginx_links_to_and_no_more(package: str, needed: bool) -> None:
    assert bool(debian.NGINX_NEEDS.match(package)) == needed


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
