"""MySQL's packages: which of them, from where, and that they are still what was downloaded."""

from pathlib import Path

import pytest

from racetrack.errors import SetupError
from racetrack.install import debian

UBUNTU = 'NAME="Ubuntu"\nVERSION_CODENAME=noble\nID=ubuntu\nID_LIKE=debian\n'
DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_CODENAME=bookworm\nID=debian\n'


@pytest.mark.parametrize(("text", "suite"), [(DEBIAN, "sid"), (UBUNTU, "noble")])
def test_debian_has_it_in_sid_and_ubuntu_in_its_own_archive(
    text: str, suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debian, "OS_RELEASE", tmp_path / "os-release")
    (tmp_path / "os-release").write_text(text)
    assert debian.mysql().label == suite


@pytest.mark.parametrize(
    ("package", "needed"),
    [
        *[("mysql-server-core", True), ("libc6", True), ("libssl3t64", True), ("zlib1g", True)],
        *[("perl-base", False), ("libperl5.40", False), ("debconf", False), ("dpkg", False)],
    ],
)
def test_what_the_server_links_to_and_no_more(package: str, needed: bool) -> None:
    assert bool(debian.NEEDED.match(package)) == needed


def test_a_package_that_has_changed_on_disk_is_refused_and_named(tmp_path: Path) -> None:
    deb = tmp_path / "libc6.deb"
    deb.write_bytes(b"as downloaded")
    sums = tmp_path / "SHA256SUMS"
    sums.write_text(f"{debian._sha256(deb)}  {deb.name}\n")
    debian._check(sums)
    deb.write_bytes(b"changed")
    with pytest.raises(SetupError, match=r"libc6\.deb"):
        debian._check(sums)
    deb.unlink()
    with pytest.raises(SetupError, match=r"libc6\.deb"):
        debian._check(sums)
