"""Names of the previous release that this one still understands: settings, and keys of JSON files.

The next release drops this module."""

import re
import sys
from collections.abc import Mapping, MutableMapping
from functools import cache
from typing import Any, TypeVar

from racetrack.errors import UsageError

Value = TypeVar("Value", bound=str | None)

# Name of a setting in the previous release → its name now.
SETTINGS: Mapping[str, str] = {
    "PAGEVIEWS_PER_SECOND_START": "EVENTS_PER_SECOND_START",
    "PAGEVIEWS_PARTITIONS": "EVENTS_PARTITIONS",
    "CAL_CPU_US_PER_PAGEVIEW": "CAL_CPU_US_PER_EVENT",
}
# Keys of a record, a result or an exported row in the previous schema version.
_OLD_KEYS = (
    "pageviews_per_s",
    "requested_pageviews_per_s",
    "offered_pageviews_per_s",
    "achieved_pageviews_per_s",
    "processed_pageviews_per_s",
    "published_pageviews",
    "processed_pageviews",
    "deleted_unread_pageviews",
)
# Such a key → its key now.
KEYS: Mapping[str, str] = {
    **{old: old.replace("pageviews", "events") for old in _OLD_KEYS},
    **SETTINGS,
    **{old.lower(): new.lower() for old, new in SETTINGS.items()},
}
# Of the recovery from a fault; elsewhere such a key is the name of a table.
KEYS_OF_RECOVERY: Mapping[str, str] = {"pageviews": "events"}
# Keys of texts that are compared with those that this version writes, and the word in them; not the
# column `item_summary.pageviews`, and not the shop's topic: `pageviews/3`, `pageviews (7)`.
TEXTS = ("outcome", "reason", "remark", "warnings")
WORD = re.compile(r"(?<![\w.])pageview(s?)\b(?!/\d| \(\d)", re.IGNORECASE)


def in_record(content: Any) -> Any:
    """Return the content of a JSON file of the previous schema version with the keys of this one.
    Keys of this version stay."""
    if isinstance(content, list):
        return [in_record(value) for value in content]
    if not isinstance(content, dict):
        return content
    keys = {**KEYS, **KEYS_OF_RECOVERY} if "fault" in content else KEYS
    return {
        keys.get(key, key): _in_text(value) if key in TEXTS else in_record(value)
        for key, value in content.items()
    }


def _in_text(value: Any) -> Any:
    if isinstance(value, list):
        return [_in_text(line) for line in value]
    if not isinstance(value, str):
        return in_record(value)
    return WORD.sub(lambda word: ("E" if word[0][0] == "P" else "e") + f"vent{word[1]}", value)


def setting(name: str, where: str) -> str:
    """Return the name of a setting in this release. If it has another one in `where`, tell the
    user."""
    new = SETTINGS.get(name.upper(), name)
    if new != name:
        _tell(f"{name} ({where}) is called {new} now; the next release will not know {name}.")
    return new


def in_settings(given: Mapping[str, Value], where: str) -> dict[str, Value]:
    """Return settings with their names in this release. An empty value under an old name is left
    out.

    Raises:
        UsageError: `where` gives a setting different values under its old and its new name.
    """
    settings = {name: value for name, value in given.items() if name.upper() not in SETTINGS}
    for name in given.keys() - settings.keys():
        if not (value := given[name]):
            continue
        new = setting(name, where)
        if settings.setdefault(new, value) != value:
            raise UsageError(
                f"{name}={value} and {new}={settings[new]} ({where}) are the same setting, since"
                f" {name} is the old name of {new}. Remove {name}."
            )
    return settings


def in_environment(environment: MutableMapping[str, str]) -> None:
    """Rename the settings in the environment of this process.

    Raises:
        UsageError: a setting has different values under its old and its new name.
    """
    if old := [name for name in environment if name.upper() in SETTINGS]:
        environment.update(in_settings(environment, "in the environment"))
        for name in old:
            del environment[name]


@cache
def _tell(line: str) -> None:
    """Print a line, once."""
    print(line, file=sys.stderr)
