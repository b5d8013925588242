"""The pip that is bundled with Python, and its configuration.

pip installs uv. Its configuration (mirror, proxy, certificates, find-links) is passed on to uv and
to image builds. Standard library only.
"""

import ast
import importlib.util
import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from racetrack import environment
from racetrack.errors import SetupError

# Variables that pip reads, by precedence.
CERTIFICATES_OF = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")
# pip's keyring providers → uv's. uv can't import the user's keyring, only call its command.
KEYRINGS = {"subprocess": "subprocess", "import": "subprocess", "disabled": "disabled"}
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
# Options that affect only how packages are downloaded. Others would change what is installed or
# where, or make pip refuse (`require-virtualenv`).
NETWORK = (
    "index-url",
    "extra-index-url",
    "no-index",
    "find-links",
    "trusted-host",
    "cert",
    "client-cert",
    "use-feature",  # `truststore`: the system's certificates
    "proxy",
    "timeout",
    "default-timeout",
    "retries",
    "keyring-provider",
)
# Options for other commands than `config`, which has options of the same names, or less output.
IN_THE_WAY = ("user", "global", "site", "isolated", "quiet", "verbose")
# Options that contain no paths and so are valid on another machine.
PORTABLE = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "retries")
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
# uv's variables that affect only how packages are downloaded. Other variables of uv would change
# what is installed, or where.
UV_NETWORK = (
    "UV_DEFAULT_INDEX",
    "UV_INDEX",  # prefix of several variables, such as those for passwords
    "UV_EXTRA_INDEX_URL",
    "UV_FIND_LINKS",
    "UV_NO_INDEX",
    "UV_INSECURE_HOST",
    "UV_SYSTEM_CERTS",
    "UV_NATIVE_TLS",
    "UV_HTTP_TIMEOUT",
    "UV_HTTP_RETRIES",
    "UV_KEYRING_PROVIDER",
    "UV_CONCURRENT_DOWNLOADS",
    "UV_COMPILE_BYTECODE",
)


def this_python() -> str:
    """Return the name of this interpreter, such as `python3.11`."""
    return f"python{sys.version_info.major}.{sys.version_info.minor}"


def base_python() -> Path:
    """Return the interpreter on which the current virtual environment, if any, is based.

    An environment made from it does not depend on the current one.
    """
    return Path(sys.base_prefix) / "bin" / this_python()


def command() -> list[str | Path]:
    """Return the command that runs the bundled pip from its wheel, without installing it.

    Raises:
        SetupError: this Python has no bundled pip.
    """
    module = importlib.util.find_spec("ensurepip")
    folders = [Path(module.origin).parent / "_bundled"] if module and module.origin else []
    if shared := sysconfig.get_config_var("WHEEL_PKG_DIR"):  # set on Debian
        folders.insert(0, Path(shared))
    for folder in folders:
        for wheel in sorted(folder.glob("pip-*.whl")):
            return [base_python(), wheel / "pip"]
    raise SetupError(
        f"{base_python()} comes without pip: it has no pip-*.whl. Install that (Debian:"
        " apt-get install python3-venv), then try again."
    )


def settings() -> dict[str, str]:
    """Return pip's NETWORK options, from its files and (with precedence) the environment.

    Raises:
        SetupError: pip can't read its configuration.
    """
    harmless = {_variable(option): "0" for option in IN_THE_WAY}
    done = subprocess.run(
        [*command(), "config", "list"],
        env=environment.of_download() | harmless | {"PIP_PYTHON": str(base_python())},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SetupError(
            f"pip can't read its configuration; correct the file or PIP_… variable:\n"
            f"    {done.stderr.strip()[-500:]}"
        )
    return parse(done.stdout)


def parse(listed: str) -> dict[str, str]:
    """Return the options in the output of `pip config list`, lines such as
    `global.index-url='https://…'`. Only NETWORK options that concern `install` are included."""
    ranks = {"global": 0, "install": 1, ":env:": 2}
    values: dict[str, tuple[int, str]] = {}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        section, _, option = name.partition(".")
        rank = ranks.get(section)
        if option in NETWORK and rank is not None and rank >= values.get(option, (0, ""))[0]:
            values[option] = rank, str(ast.literal_eval(value))
    return {option: value for option, (_, value) in values.items()}


def install_environment(
    settings: Mapping[str, str], environ: Mapping[str, str] | None = None
) -> dict[str, str | None]:
    """Return environment variables with which `pip install` uses `settings` and no other
    configuration of the user. The value of variables to be removed is None."""
    environ = environment.of_download() if environ is None else environ
    features = settings.get("use-feature", "").split()
    return {
        **dict.fromkeys(name for name in environ if name.startswith("PIP_")),
        **{_variable(option): value for option, value in settings.items()},
        "PIP_USE_FEATURE": "truststore" if "truststore" in features else None,
        "PIP_CONFIG_FILE": os.devnull,  # no configuration file at all
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def uv_environment(
    settings: Mapping[str, str], environ: Mapping[str, str] | None = None
) -> dict[str, str | None]:
    """Return environment variables with which uv downloads packages as pip does with `settings`.

    The user's download variables for uv (UV_NETWORK) take precedence. The value of all other
    variables of uv is None: they are to be removed from the environment.
    """
    environ = environment.of_download() if environ is None else environ
    find_links = [_expanded(place) for place in settings.get("find-links", "").split()]
    extra = settings.get("extra-index-url", "").split()
    certificates = settings.get("cert") or next(filter(None, map(environ.get, CERTIFICATES_OF)), "")
    proxy = settings.get("proxy", "")
    made = {
        "UV_DEFAULT_INDEX": settings.get("index-url", ""),
        "UV_INDEX": " ".join(extra),
        # pip takes a package from any index that has it.
        "UV_INDEX_STRATEGY": "unsafe-best-match" if extra else "",
        "UV_FIND_LINKS": ",".join(place for place in find_links if _is_there(place)),
        "UV_NO_INDEX": "true" if _is_on(settings.get("no-index", "")) else "",
        "UV_INSECURE_HOST": " ".join(settings.get("trusted-host", "").split()),
        "SSL_CERT_FILE": certificates,
        # Like Debian's pip, trust the system's certificates; uv has a list of its own by default.
        "UV_SYSTEM_CERTS": "" if certificates else "true",
        "SSL_CLIENT_CERT": settings.get("client-cert", ""),
        "UV_HTTP_TIMEOUT": settings.get("timeout") or settings.get("default-timeout") or "60",
        "UV_HTTP_RETRIES": settings.get("retries") or "5",
        "UV_KEYRING_PROVIDER": KEYRINGS.get(settings.get("keyring-provider", ""), ""),
        **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), proxy),
    }
    of_uv = {name: value for name, value in environ.items() if name.startswith("UV_")}
    return {
        **dict.fromkeys(of_uv),
        **{name: value for name, value in made.items() if value},
        **{name: value for name, value in of_uv.items() if name.startswith(UV_NETWORK) and value},
    }


def for_build(settings: Mapping[str, str]) -> str:
    """Return a pip.conf for image builds: this machine's portable options, and CERTIFICATES."""
    portable = {name: settings[name] for name in PORTABLE if name in settings}
    lines = [f"{name} = {_indented(value)}\n" for name, value in portable.items()]
    return "".join(["[global]\n", f"cert = {CERTIFICATES}\n", *lines])


def certificates(settings: Mapping[str, str]) -> str:
    """Return the certificates that this machine trusts, as PEM.

    They include the certificate of a proxy that inspects TLS.
    """
    chosen = Path(settings.get("cert", CERTIFICATES))
    return (chosen if chosen.is_file() else Path(CERTIFICATES)).read_text()


def proxies() -> dict[str, str]:
    """Return the environment's proxy variables, for image builds; Docker does not store them in the
    image."""
    environ = environment.of_download()
    return {name: environ[name] for name in PROXIES if environ.get(name)}


def _variable(option: str) -> str:
    """Return the environment variable of one of pip's options."""
    return f"PIP_{option.upper().replace('-', '_')}"


def _expanded(place: str) -> str:
    return place if urlsplit(place).scheme else str(Path(place).expanduser().absolute())


def _is_there(place: str) -> bool:
    """Return False if a find-links location is a folder that does not exist. Other URLs are not
    checked. pip skips missing folders, but uv would fail."""
    url = urlsplit(place)
    return url.scheme not in ("", "file") or Path(url2pathname(url.path)).exists()


def _is_on(value: str) -> bool:
    return value.lower() in ("1", "true", "yes", "on", "y", "t")


def _indented(value: str) -> str:
    """Format a value of several lines for a configuration file."""
    return "\n    ".join(value.split("\n"))
