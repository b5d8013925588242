"""Versions of the parts, from `.env` and those of engines; environment variables take precedence.
Standard library only."""

import os
from collections.abc import Mapping

from racetrack import plugins, renamed
from racetrack.errors import UsageError

OF_THE_STACK = ("KAFKA_VERSION", "APICURIO_VERSION", "DEBEZIUM_VERSION")


def names() -> tuple[str, ...]:
    """Return the names of the settings that contain the version of a part."""
    brought = (module.INSTALLS.versions for module in plugins.of_all("recipe").values())
    return (*OF_THE_STACK, *(name for versions in brought for name in versions))


def in_env_files() -> dict[str, str]:
    """Return all settings in `.env` and the `.env` files of engines and workloads."""
    settings: dict[str, str] = {}
    for file in (plugins.REPO / ".env", *plugins.env_files()):
        if file.exists():
            given = parse_env_file(file.read_text())
            settings |= {renamed.SETTINGS.get(name, name): value for name, value in given.items()}
    return settings


def parse_env_file(text: str) -> dict[str, str]:
    """Parse the assignments of a `.env` text: `NAME=value`, `# comment`, quotes as in dotenv."""
    values = {}
    for line in text.splitlines():
        name, equals, value = line.strip().removeprefix("export ").partition("=")
        if equals and not name.startswith("#"):
            values[name.strip()] = _unquoted(value.strip())
    return values


def _unquoted(value: str) -> str:
    if value[:1] in ("'", '"'):
        return value[1:].partition(value[0])[0]
    return value.partition(" #")[0].rstrip()


def read_versions(
    in_files: Mapping[str, str] | None = None, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return setting → version for all settings in `names`; `in_files` replaces the `.env` files.

    Raises:
        UsageError: neither a file nor the environment contains one of the versions.
    """
    known = in_env_files() if in_files is None else in_files
    values = {name: environ.get(name) or known.get(name, "") for name in names()}
    missing = [name for name, value in values.items() if not value]
    if missing and not (plugins.REPO / ".env").exists():
        raise UsageError(plugins.NO_ENV_FILE)
    if missing:
        raise UsageError(
            f"No version given for {', '.join(missing)}: neither {plugins.REPO / '.env'} nor an"
            f" engine's own nor the environment sets it. Add a line such as {missing[0]}=… to the"
            " file."
        )
    return values
