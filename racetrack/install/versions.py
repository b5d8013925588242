"""The versions of what is installed: from `.env`, the environment wins. Standard library only."""

import os
from collections.abc import Mapping
from pathlib import Path

from racetrack.errors import SetupError

REPO = Path(__file__).resolve().parents[2]
NAMES = (
    *("KAFKA_VERSION", "APICURIO_VERSION", "DEBEZIUM_VERSION", "DEEPHAVEN_VERSION"),
    *("FLINK_VERSION", "FLINK_KAFKA_VERSION"),
)


def parse_env_file(text: str) -> dict[str, str]:
    """The assignments of a `.env` text: `NAME=value`, `# comment`, quotes as dotenv reads them."""
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
    env_file: Path = REPO / ".env", environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Variable of `NAMES` → version.

    Raises:
        SetupError: one of them is neither in the file nor in the environment.
    """
    in_file = parse_env_file(env_file.read_text()) if env_file.exists() else {}
    values = {name: environ.get(name) or in_file.get(name, "") for name in NAMES}
    missing = [name for name, value in values.items() if not value]
    if missing:
        raise SetupError(
            f"No version given for {', '.join(missing)}: neither {env_file} nor the environment "
            f"sets it. Add a line such as {missing[0]}=… to {env_file}."
        )
    return values
