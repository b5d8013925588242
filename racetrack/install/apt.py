"""Packages of a Debian or Ubuntu archive, fetched by an apt of our own and unpacked: the host's own
system is not touched, and the packages may be of another release than the host's."""

import hashlib
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from racetrack.errors import SetupError
from racetrack.install.recipe import Site

OS_RELEASE = Path("/etc/os-release")
DEBIAN_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


@dataclass(frozen=True)
class Packages:
    """What a part takes from an archive: the first of `either` that the archive has, and of all
    that it depends on what `needed` matches."""

    part: str
    suite: str
    either: tuple[str, ...]
    needed: re.Pattern[str]


def host() -> tuple[str, str]:
    """The distribution of this machine and its release, such as `debian` and `bookworm`."""
    release = os_release(OS_RELEASE.read_text() if OS_RELEASE.exists() else "")
    return release.get("ID", "unknown"), release.get("VERSION_CODENAME", "unknown")


def os_release(text: str) -> dict[str, str]:
    """The fields of an os-release file."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name: value.strip().strip("\"'") for name, _, value in pairs}


def unpack(site: Site, wanted: Packages) -> None:
    """Fetch the packages, unless an earlier set-up kept them, and unpack them into `site.folder`.

    Raises:
        SetupError: they can't be had, or are no longer what was downloaded.
    """
    debs = site.downloads / f"{wanted.part}-{wanted.suite}"
    sums = debs / "SHA256SUMS"
    if not sums.exists():  # once fetched, the version stays
        # Begun anew: what an earlier attempt left may be of a version that has gone since.
        shutil.rmtree(debs, ignore_errors=True)
        making = debs.with_name(f"{debs.name}-unfinished")
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        _fetch(site, wanted, making)
        lines = [f"{_sha256(deb)}  {deb.name}\n" for deb in _debs(making)]
        (making / sums.name).write_text("".join(lines))
        making.rename(debs)
        shutil.rmtree(site.folder / "apt")
    _check(wanted.part, sums)
    for deb in _debs(debs):
        site.run("dpkg-deb", "--extract", deb, site.folder, doing=f"unpacking {deb.name}")


def own_loader(folder: Path, program: str, *libraries: str) -> list[str]:
    """The command that runs an unpacked program with the loader and libraries beside it, whatever
    the machine has. All paths but `folder` are relative to it."""
    (loader, *_) = sorted(
        path
        for pattern in ("usr/lib/*-linux-gnu*/ld-linux-*.so.*", "lib/*-linux-gnu*/ld-linux-*.so.*")
        for path in folder.glob(pattern)
    )
    triplet = loader.parent.name
    beside = (f"usr/lib/{triplet}", f"lib/{triplet}", *libraries)
    path = ":".join(str(folder / each) for each in beside if (folder / each).is_dir())
    return [str(loader), "--library-path", path, str(folder / program)]


def mirror(site: Site) -> str:
    """The host's own Debian mirror, from its apt configuration.

    Raises:
        SetupError: apt has none.
    """
    listed = site.run(
        *("apt-get", "indextargets", "--format", "$(REPO_URI) $(ORIGIN) $(LABEL)"),
        "Created-By: Packages",
        doing="asking apt for this machine's mirror",
    )
    for line in listed.splitlines():
        uri, _, origin = line.partition(" ")
        if origin == "Debian Debian":
            return uri
    raise SetupError(
        "apt has no package index of a Debian mirror here. Run `apt-get update` "
        "(with a Debian mirror in /etc/apt/sources.list), then try again; or use Docker."
    )


def _fetch(site: Site, wanted: Packages, debs: Path) -> None:
    """Resolve and download with an apt of our own: own sources, own state, the archive's keys."""
    apt = _private_apt(site, wanted.suite)
    site.run("apt-get", *apt, "update", doing="reading the package index")
    for package in wanted.either:
        if site.run("apt-cache", *apt, "search", "--names-only", f"^{package}$", doing="searching"):
            break
    else:
        raise SetupError(
            f"{wanted.part}: the archive of {wanted.suite} has none of {', '.join(wanted.either)}. "
            "Use Docker, or Debian 12 or an Ubuntu of today."
        )
    resolved = site.run(
        *("apt-get", *apt, "install", "--print-uris", "--quiet=2", "--no-install-recommends"),
        *("--yes", package),
        doing=f"resolving what {wanted.part} needs",
    )
    # Each line: 'URI' file-name size hash; a file's name starts with <package>_<version>_.
    names = [line.split()[1].split("_") for line in resolved.splitlines() if line.startswith("'")]
    packages = [
        f"{name}={ver.replace('%3a', ':')}" for name, ver, *_ in names if wanted.needed.match(name)
    ]
    site.run("apt-get", *apt, "download", *packages, cwd=debs, doing="downloading packages")


def _private_apt(site: Site, suite: str) -> list[str]:
    """Options that give apt a state of its own, and on Debian a sources list for the suite."""
    state = site.folder / "apt"
    for name in ("lists/partial", "cache/archives/partial"):
        (state / name).mkdir(parents=True)
    (state / "status").touch()
    options = {
        "Dir::State": state,
        "Dir::State::lists": state / "lists",
        "Dir::State::status": state / "status",
        "Dir::Cache": state / "cache",
        "APT::Sandbox::User": "root",  # the folder may be where apt's own user can't read
        "APT::Update::Post-Invoke::": "true",
        "Acquire::Retries": "5",
        "Acquire::Languages": "none",
    }
    if host()[0] == "debian":
        (state / "sources.list").write_text(
            f"deb [signed-by={DEBIAN_KEYRING} target=Packages] {mirror(site)} {suite} main\n"
        )
        options |= {"Dir::Etc::sourcelist": state / "sources.list", "Dir::Etc::sourceparts": "-"}
    return [word for name, value in options.items() for word in ("-o", f"{name}={value}")]


def _debs(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.deb"))


def _check(part: str, sums: Path) -> None:
    for line in sums.read_text().splitlines():
        digest, _, name = line.partition("  ")
        deb = sums.with_name(name)
        if not deb.exists() or _sha256(deb) != digest:
            raise SetupError(
                f"{part}: {deb} is not the file that was downloaded. Remove {sums.parent} and run "
                "this again: it is downloaded anew."
            )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
