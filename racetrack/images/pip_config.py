"""How this machine reaches PyPI, for a stage of a build that has to reach it the same way: pip's
index and certificates, and proxies. Nothing of it stays in an image."""

import ast
import subprocess
import sys
from pathlib import Path

from racetrack import environment

CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
# What pip is told that holds elsewhere, too: no paths of this machine.
TOLD = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "retries")
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


def for_build() -> str:
    """A pip.conf with this machine's index, and the certificates of `certificates`."""
    lines = [f"{name} = {value}\n" for name, value in _settings().items() if name in TOLD]
    return "".join(["[global]\n", f"cert = {CERTIFICATES}\n", *lines])


def certificates() -> str:
    """The certificates that this machine trusts, as PEM: also those of whoever inspects its TLS."""
    chosen = Path(_settings().get("cert", CERTIFICATES))
    return (chosen if chosen.is_file() else Path(CERTIFICATES)).read_text()


def proxies() -> dict[str, str]:
    """The proxies of the environment. Docker keeps them out of an image's history by itself."""
    told = environment.of_download()
    return {name: told[name] for name in PROXIES if told.get(name)}


def _settings() -> dict[str, str]:
    """What pip would use; the environment wins over files, as it does for pip."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"],
        env=environment.of_download(),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return parse(listed)


def parse(listed: str) -> dict[str, str]:
    """The output of `pip config list`: lines such as `global.index-url='https://…'`."""
    found: dict[str, str] = {}
    for line in sorted(listed.splitlines(), key=lambda line: line.startswith(":env:")):
        name, _, value = line.partition("=")
        found[name.rpartition(".")[2]] = str(ast.literal_eval(value))
    return found
