"""Fetches packages of a Debian or Ubuntu archive with a private apt, and unpacks them.

This does not change the host's system, and the packages may belong to another release of Debian.
"""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from racetrack.errors import SetupError
from racetrack.install.recipe import Site

OS_RELEASE = Path("/etc/os-release")
DEBIAN_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")

DOCUMENTATION = ("usr/share/doc", "usr/share/man", "usr/share/lintian", "usr/share/locale")


@dataclass(frozen=True)
class Packages:
    """The packages that provide `part` (such as `mysql`), from the distribution's release `suite`.

    The main package is the first of `either` that the archive offers. Of its dependencies, those
    whose names match `needed` are included. After unpacking, files and folders that match
    `never_read` are removed.
    """

    part: str
    suite: str
    either: tuple[str, ...]
    needed: re.Pattern[str]
    never_read: tuple[str, ...] = DOCUMENTATION


def host(release_file: Path = OS_RELEASE) -> tuple[str, str]:
    """Return this machine's distribution and release, such as `debian` and `bookworm`."""
    release = os_release(release_file.read_text() if release_file.exists() else "")
    return release.get("ID", "unknown"), release.get("VERSION_CODENAME", "unknown")


def os_release(text: str) -> dict[str, str]:
    """Return the fields of an os-release file."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name: value.strip().strip("\"'") for name, _, value in pairs}


def unpack(site: Site, wanted: Packages) -> None:
    """Fetch the packages and unpack them into `site.folder`.

    Raises:
        SetupError: the packages can't be fetched.
    """
    debs = site.scratch / "debs"
    debs.mkdir()
    _fetch(site, wanted, debs)
    # One call for all packages starts fewer processes.
    script = 'for deb; do dpkg-deb --extract "$deb" . || exit; done'
    site.run(
        "sh",
        "-c",
        script,
        "sh",
        *sorted(debs.glob("*.deb")),
        cwd=site.folder,
        doing="unpacking packages",
    )
    for pattern in wanted.never_read:
        for path in site.folder.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()


def own_loader(folder: Path, program: str, *libraries: str) -> list[str]:
    """Return the command that runs an unpacked program with the unpacked loader and libraries.

    So the program does not depend on the machine's C library. `program` and `libraries` (further
    library folders) are relative to `folder`.
    """
    (loader, *_) = sorted(
        path
        for pattern in ("usr/lib/*-linux-gnu*/ld-linux-*.so.*", "lib/*-linux-gnu*/ld-linux-*.so.*")
        for path in folder.glob(pattern)
    )
    triplet = loader.parent.name
    beside = (f"usr/lib/{triplet}", f"lib/{triplet}", *libraries)
    path = ":".join(str(folder / name) for name in beside if (folder / name).is_dir())
    return [str(loader), "--library-path", path, str(folder / program)]


def installed_version(site: Site, part: str, *argv: str | Path, pattern: str) -> str:
    """Start an unpacked program, which proves that no library is missing, and return its version:
    what `pattern` captures in its output, or the whole output if it does not match."""
    output = site.run(*argv, doing=f"starting the unpacked {part}").strip()
    version = re.search(pattern, output)
    return version[1] if version else output


def mirror(site: Site) -> str:
    """Return the host's Debian mirror from its apt configuration.

    Raises:
        SetupError: apt's configuration has no Debian mirror.
    """
    listed = site.run(
        "apt-get",
        "indextargets",
        "--format",
        "$(REPO_URI) $(ORIGIN) $(LABEL)",
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
    """Resolve and download packages with a private apt, which has its own sources and state but
    verifies packages with the archive's keys."""
    apt = _private_apt(site, wanted.suite)
    site.run("apt-get", *apt, "update", doing="reading the package index")
    for package in wanted.either:
        if site.run("apt-cache", *apt, "search", "--names-only", f"^{package}$", doing="searching"):
            break
    else:
        raise SetupError(
            f"{wanted.part}: the archive of {wanted.suite} has none of {', '.join(wanted.either)}. "
            "Use Docker, or Debian 12 or 13, or a current Ubuntu."
        )
    resolved = site.run(
        "apt-get",
        *apt,
        "install",
        "--print-uris",
        "--quiet=2",
        "--no-install-recommends",
        "--yes",
        package,
        doing=f"resolving what {wanted.part} needs",
    )
    # Each line: 'URI' file-name size hash; a file's name starts with <package>_<version>_.
    names = [line.split()[1].split("_") for line in resolved.splitlines() if line.startswith("'")]
    packages = [
        f"{name}={ver.replace('%3a', ':')}" for name, ver, *_ in names if wanted.needed.match(name)
    ]
    site.run("apt-get", *apt, "download", *packages, cwd=debs, doing="downloading packages")


def _private_apt(site: Site, suite: str) -> list[str]:
    """Return options that give apt its own state, and on Debian its own sources list."""
    state = site.scratch / "apt"
    for name in ("lists/partial", "cache/archives/partial"):
        (state / name).mkdir(parents=True)
    (state / "status").touch()
    options = {
        "Dir::State": state,
        "Dir::State::lists": state / "lists",
        "Dir::State::status": state / "status",
        "Dir::Cache": state / "cache",
        "APT::Sandbox::User": "root",  # apt's usual user may be unable to read the folder
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
