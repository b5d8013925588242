"""`./race engines`: lists the engines with their versions, runtimes, workloads and settings."""

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from racetrack import plugins
from racetrack.cli.parameters import ENGINES, Command, errors_to_exit_codes, load_settings
from racetrack.install.versions import in_env_files

if TYPE_CHECKING:
    from racetrack.engines.contract import Engine

HEADING = "# ---"
MASKED = "********"
COLUMNS = ("", "setting", "now", "default", "what it does")
ROOM = 30  # characters of the last column, at least
SENTENCE = re.compile(r".*?[.](?=\s|$)")


@dataclass(frozen=True)
class EngineSetting:
    """A setting of an engine, with its current value and its default."""

    name: str
    now: str
    default: str
    comment: Sequence[str]  # lines of the explanation in the `.env` file

    @property
    def is_changed(self) -> bool:
        """True if the environment overrides the default."""
        return self.now != self.default

    @property
    def is_version(self) -> bool:
        """True if the setting is the version of a component."""
        return self.name.endswith("_VERSION")


@click.command("engines", cls=Command)
@click.argument("name", metavar="[ENGINE]", required=False, type=ENGINES)
def list_engines(name: str | None) -> None:
    """List the engines, with versions, runtimes, workloads and settings of each.

    With the name of one engine, its settings are explained in full, also those of its variants such
    as flink@tuned. A * marks a setting that the environment changes.

    \b
    Examples:
        ./race engines
        ./race engines dh
        DEEPHAVEN_HEAP=8g ./race engines dh
    """
    from racetrack import engines

    with errors_to_exit_codes():
        load_settings()  # reports invalid values
        listed = [engines.find_engine(name)] if name else engines.all_engines()
        for engine in listed:
            _show(engine, engine_settings(engine.name), whole=bool(name))


def engine_settings(engine: str) -> list[EngineSetting]:
    """Return the engine's own settings in the order of its `settings.py`, then the versions of its
    container images, which `settings.py` lacks."""
    from racetrack import config as settings

    files = (plugins.REPO / ".env", *plugins.env_files())
    explained = comments_in("\n".join(file.read_text() for file in files))
    defaults = in_env_files()
    given = {name.upper(): value.strip() for name, value in os.environ.items()}
    entries = []
    for name in _names(engine):
        default, now = defaults.get(name, ""), given.get(name, defaults.get(name, ""))
        field = settings.every_setting().get(name.lower())
        if field and "SecretStr" in str(field.annotation):
            # Show whether a secret differs from the default.
            now = now and (MASKED if now == default else f"{MASKED} (another)")
            default = default and MASKED
        entries.append(EngineSetting(name, now, default, explained.get(name, ())))
    return entries


def comments_in(text: str) -> dict[str, list[str]]:
    """Return the comment above each setting in a file of settings: setting → lines."""
    comments: dict[str, list[str]] = {}
    above: list[str] = []
    for line in text.splitlines():
        if line.startswith("#") and not line.startswith(HEADING):
            above.append(line.removeprefix("#").strip())
            continue
        name, equals, _ = line.partition("=")
        if equals and not line.startswith("#"):
            comments[name.strip()] = above
        above = []
    return comments


def first_sentence(comment: Sequence[str]) -> str:
    """Return the first sentence of a comment; all of it if it has no full stop."""
    text = " ".join(comment)
    sentence = SENTENCE.match(text)
    return sentence[0] if sentence else text


def _names(engine: str) -> list[str]:
    """Return the names of an engine's settings, each once."""
    from racetrack import config as settings

    named = map(str.upper, settings.of_engine(engine))
    applicability = getattr(plugins.of_all("settings").get(engine), "APPLICABILITY", None)
    return list(dict.fromkeys([*named, *(applicability.image_versions if applicability else ())]))


def _show(engine: "Engine", of_engine: Sequence[EngineSetting], *, whole: bool) -> None:
    """Print an engine."""
    click.secho(f"{engine.name}  {engine.title}", bold=True)
    for label, value in _facts(engine, of_engine):
        click.echo(f"  {label:<11}{value}")
    if rest := [
        setting for setting in of_engine if not setting.is_version or (whole and setting.comment)
    ]:
        click.echo("\n".join(_table(rest, whole=whole)))
    if whole:
        for line in _files(engine.name):
            click.echo(line)
    click.echo()


def _files(engine: str) -> Iterator[str]:
    """Yield the settings of the engine's variants such as `flink@tuned`, with their reasons."""
    from racetrack.plan import setting_files

    for name in setting_files.files_of(engine):
        yield f"\n{engine}@{name}"
        for setting in setting_files.read_file(engine, name):
            only = f" (workload {setting.workload} only)" if setting.workload else ""
            yield f"  {setting}{only}"
            yield from (f"    {line}" for line in setting.reason)


def _facts(engine: "Engine", of_engine: Sequence[EngineSetting]) -> Iterator[tuple[str, str]]:
    versions = [
        f"{setting.name}={setting.now}"
        + (f" (default {setting.default})" if setting.is_changed else "")
        for setting in of_engine
        if setting.is_version
    ]
    scripts = [f"{workload} (scripts/{script})" for workload, script in engine.scripts.items()]
    yield "versions", ", ".join(versions) or "none to choose"
    yield "runtimes", ", ".join(engine.runtimes)
    yield "replicas", f"1 or more ({', '.join(engine.scalable_on)})" if engine.scalable_on else "1"
    yield "workloads", ", ".join(scripts) or "it counts the main topic only"
    if all(setting.is_version for setting in of_engine):
        yield "settings", "none"


def _table(of_engine: Sequence[EngineSetting], *, whole: bool) -> Iterator[str]:
    """Yield the settings as lines. On a terminal, the last column is wrapped."""
    rows = [COLUMNS, *(_row(setting, whole=whole) for setting in of_engine)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS) - 1)]
    margin = sum(width + 2 for width in widths)
    room = max(shutil.get_terminal_size().columns - margin, ROOM) if sys.stdout.isatty() else None
    for *cells, text in rows:
        padded = (cell.ljust(width + 2) for cell, width in zip(cells, widths, strict=True))
        lines = textwrap.wrap(text, room) if room else text.splitlines()
        line = "".join(padded) + f"\n{' ' * margin}".join(lines)
        yield click.style(line.rstrip(), fg="yellow" if cells[0] == "*" else None)


def _row(setting: EngineSetting, *, whole: bool) -> tuple[str, str, str, str, str]:
    text = "\n".join(setting.comment) if whole else first_sentence(setting.comment)
    return ("*" if setting.is_changed else "", setting.name, setting.now, setting.default, text)
