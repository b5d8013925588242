"""Files of settings in an engine's folder, such as `racetrack/engines/flink/tuned.env`, which the
variant `flink@tuned` uses.

    # Comment lines directly above a setting are its reason.
    NAME=value
    [shop]
    # Settings below a heading hold for this workload only.
    OTHER=value
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from dotenv import dotenv_values

from racetrack import config, plugins, renamed
from racetrack.errors import UsageError
from racetrack.stack import applicability

TUNED = "tuned"
_SECTION = re.compile(r"\[(\w+)\]")
_SETTING = re.compile(r"([A-Z][A-Z0-9_]*)=")


@dataclass(frozen=True)
class FileSetting:
    """A setting of a file. An empty `workload` stands for all; `reason` is the comment above it, by
    lines."""

    name: str
    value: str
    workload: str
    reason: tuple[str, ...]
    where: str  # file and line

    def __str__(self) -> str:
        return f"{self.name}={self.value}"


def files_of(engine: str) -> list[str]:
    """Return the names of an engine's files of settings."""
    return sorted(file.stem for file in (plugins.ENGINES / engine).glob("[!.]*.env"))


def read_file(engine: str, name: str) -> list[FileSetting]:
    """Return the settings in an engine's file.

    Raises:
        UsageError: there is no such file, a line has another form, a setting belongs neither to the
            engine nor to the core, or a value is impossible. The message names file and line.
    """
    file = plugins.ENGINES / engine / f"{name}.env"
    if not file.is_file():
        there = ", ".join(files_of(engine)) or "none"
        raise UsageError(f"{engine}@{name}: there is no {file}. There: {there}.")
    settings = _parsed(file)
    for number, setting in enumerate(settings):
        _require_usable(setting, engine)
        for earlier in settings[:number]:
            if (earlier.name, earlier.workload) == (setting.name, setting.workload):
                raise UsageError(f"{setting.where}: {setting.name} is set at {earlier.where}, too.")
    return settings


def _parsed(file: Path) -> list[FileSetting]:
    workload, above = "", list[str]()
    settings = []
    for number, line in enumerate(map(str.strip, file.read_text().splitlines()), start=1):
        where = f"{file}, line {number}"
        if line.startswith("#"):
            above.append(line.removeprefix("#").strip())
            continue
        if section := _SECTION.fullmatch(line):
            workload = section[1]
            if workload not in plugins.workload_names():
                names = ", ".join(plugins.workload_names())
                raise UsageError(f"{where}: there is no workload {workload!r}. There are {names}.")
        elif setting := _SETTING.match(line):
            name, value = setting[1], dotenv_values(stream=StringIO(line), interpolate=False)
            now = renamed.setting(name, where)
            settings.append(FileSetting(now, value[name] or "", workload, tuple(above), where))
        elif line:
            raise UsageError(
                f"{where}: {line!r} is neither a comment, nor NAME=value, nor the heading of a"
                " workload such as [shop]."
            )
        above = []
    return settings


def _require_usable(setting: FileSetting, engine: str) -> None:
    """Check that a setting belongs to the engine or to the core, and that it can have this value.

    Raises:
        UsageError: it does not, or it can't.
    """
    name = setting.name.lower()
    if name in config.of_other_engines(engine):
        raise UsageError(f"{setting.where}: {setting.name} is a setting of another engine.")
    if name not in (*config.of_engine(engine), *config.Settings.model_fields):
        raise UsageError(
            f"{setting.where}: {setting.name} is no setting of {engine} or of the core. See .env,"
            f" and `./race engines {engine}`."
        )
    if name == "workload":
        raise UsageError(f"{setting.where}: {setting.name} is chosen by the plan.")
    try:
        config.load({setting.name: setting.value})
    except UsageError as error:
        raise UsageError(f"{setting.where}: {error}") from error


def for_workload(
    settings: Sequence[FileSetting], workload: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Return those settings that hold for a workload, and of these the names of those without
    effect on it, each with the reason."""
    given = {
        setting.name: setting.value for setting in settings if setting.workload in ("", workload)
    }
    why = {name: applicability.why_without_effect(name, workload) for name in given}
    skipped = {name: reason for name, reason in why.items() if reason}
    return {name: value for name, value in given.items() if name not in skipped}, skipped
