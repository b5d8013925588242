"""MySQL from Debian's (or Ubuntu's) archive into a private prefix: the host's root is not touched.

Debian has MySQL in sid only, so its packages can't be installed beside the stable ones: they are
unpacked with their own C library, and run through their own dynamic loader.
"""

import hashlib
import re
import shutil
from pathlib import Path

from racetrack.errors import SetupError
from racetrack.install.recipe import Recipe, Site

OS_RELEASE = Path("/etc/os-release")
DEBIAN_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
SERVERS = ("mysql-server-core", "mysql-server-core-8.4", "mysql-server-core-8.0")
# Of everything that the server depends on, what it links to. The rest is for installing it (perl,
# debconf, dpkg), which unpacking does not need.
NEEDED = re.compile(r"^(mysql-|lib(?!perl)|zlib1g)")


def mysql() -> Recipe:
    """`usr/sbin/mysqld` and the libraries and loader it runs with."""
    release = os_release(OS_RELEASE.read_text() if OS_RELEASE.exists() else "")
    suite = "sid" if release.get("ID") == "debian" else release.get("VERSION_CODENAME", "unknown")
    return Recipe(
        part="mysql",
        label=suite,
        why=f"MySQL, the shop's database ({release.get('ID', 'unknown')} {suite}, unpacked)",
        download_mb=50,
        needs=("apt-get", "dpkg-deb"),
        content=(),
        build=lambda site: _build(site, suite),
        revision=b"1",
    )


def os_release(text: str) -> dict[str, str]:
    """The fields of an os-release file."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name: value.strip().strip("\"'") for name, _, value in pairs}


def _build(site: Site, suite: str) -> str:
    debs = site.downloads / f"mysql-{suite}"
    sums = debs / "SHA256SUMS"
    if not sums.exists():  # once fetched, the version stays
        # Begun anew: what an earlier attempt left may be of a version that has gone since.
        shutil.rmtree(debs, ignore_errors=True)
        making = debs.with_name(f"{debs.name}-unfinished")
        shutil.rmtree(making, ignore_errors=True)
        making.mkdir(parents=True)
        _fetch(site, suite, making)
        lines = [f"{_sha256(deb)}  {deb.name}\n" for deb in _debs(making)]
        (making / sums.name).write_text("".join(lines))
        making.rename(debs)
        shutil.rmtree(site.folder / "apt")
    _check(sums)
    for deb in _debs(debs):
        site.run("dpkg-deb", "--extract", deb, site.folder, doing=f"unpacking {deb.name}")
    return _version(site)


def _fetch(site: Site, suite: str, debs: Path) -> None:
    """Resolve and download with an apt of our own: own sources, own state, the archive's keys."""
    apt = _private_apt(site, suite)
    site.run("apt-get", *apt, "update", doing="reading the package index")
    for server in SERVERS:
        if site.run("apt-cache", *apt, "search", "--names-only", f"^{server}$", doing="searching"):
            break
    else:
        raise SetupError(
            f"mysql: the archive of {suite} has none of {', '.join(SERVERS)}. "
            "Use Docker, or Debian 12 or an Ubuntu of today."
        )
    wanted = site.run(
        *("apt-get", *apt, "install", "--print-uris", "--quiet=2", "--no-install-recommends"),
        *("--yes", server),
        doing="resolving what MySQL needs",
    )
    # Each line: 'URI' file-name size hash; a file's name starts with <package>_<version>_.
    names = [line.split()[1].split("_") for line in wanted.splitlines() if line.startswith("'")]
    packages = [
        f"{name}={ver.replace('%3a', ':')}" for name, ver, *_ in names if NEEDED.match(name)
    ]
    site.run("apt-get", *apt, "download", *packages, cwd=debs, doing="downloading packages")


def _private_apt(site: Site, suite: str) -> list[str]:
    """Options that give apt a state of its own, and a sources list for the server's suite."""
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
    if suite == "sid":
        (state / "sources.list").write_text(
            f"deb [signed-by={DEBIAN_KEYRING} target=Packages] {_mirror(site)} sid main\n"
        )
        options |= {"Dir::Etc::sourcelist": state / "sources.list", "Dir::Etc::sourceparts": "-"}
    return [word for name, value in options.items() for word in ("-o", f"{name}={value}")]


def _mirror(site: Site) -> str:
    """The host's own Debian mirror, from its apt configuration."""
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
        "mysql: apt has no package index of a Debian mirror here. Run `apt-get update` "
        "(with a Debian mirror in /etc/apt/sources.list), then try again; or use Docker."
    )


def _debs(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.deb"))


def _check(sums: Path) -> None:
    for line in sums.read_text().splitlines():
        digest, _, name = line.partition("  ")
        deb = sums.with_name(name)
        if not deb.exists() or _sha256(deb) != digest:
            raise SetupError(
                f"mysql: {deb} is not the file that was downloaded. Remove {sums.parent} and run "
                "this again: it is downloaded anew."
            )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _version(site: Site) -> str:
    """Run the unpacked server through its own loader, which shows that nothing is missing."""
    (loader,) = site.folder.glob("usr/lib/*-linux-gnu*/ld-linux-*.so.*")
    paths = [loader.parent, site.folder / "usr/lib/mysql/private", site.folder / "usr/lib/mysql"]
    said = site.run(
        *(loader, "--library-path", ":".join(map(str, paths))),
        *(site.folder / "usr/sbin/mysqld", "--no-defaults", "--version"),
        doing="starting the unpacked mysqld",
    )
    found = re.search(r"Ver (\S+)", said)
    return found[1] if found else said.strip()
