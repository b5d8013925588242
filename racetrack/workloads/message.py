"""Decides which JSON messages all engines read alike; all others are invalid.

JSON leaves open how repeated names, large numbers or text after the object are read, and each
parser accepts something else in addition. So this rule is stricter than every engine's parser
(docs/workloads.md)."""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from racetrack.workloads.contract import SourceTopic

# Longest text of a required field, in bytes: Kafka Streams' program keeps the length in 16 bits.
# Messages up to this size may be accepted by `SourceTopic.usual`.
TEXT_BYTES = 65_535
# Latest due time: with nanoseconds in 64 bits, as in Deephaven, time ends in 2262.
LATEST_MS = 2**63 // 1_000_000
# Longer values are truncated in messages about faults.
SHOWN_CHARACTERS = 60

# Values as the generator writes them, for `usual_json`.
USUAL_INTEGER, USUAL_TIME = "(?:0|-?[1-9][0-9]{0,17})", "[1-8][0-9]{12}"
USUAL_TEXT = r'"[ !#-\[\]-~]*"'

_INTEGER = re.compile("0|-?[1-9][0-9]{0,18}")
# Names and numbers of additional fields that every parser can skip.
_NAME = re.compile("[A-Za-z0-9_-]{1,100}")
_NUMBER = re.compile(r"-?[0-9]{1,18}(\.[0-9]{1,18})?([eE][+-]?[0-9]{1,2})?")
# PostgreSQL can't store U+0000, and half a surrogate pair has no UTF-8.
_UNSAFE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True)
class Fault:
    """Reason why a message is invalid. `field` is empty if the whole message is invalid."""

    field: str
    reason: str


@dataclass(frozen=True)
class _Number:
    """A number as it is written in the message."""

    text: str

    def __repr__(self) -> str:
        return self.text


class _Repeated(Exception):
    """An object has two fields of the same name."""


def usual_json(**values: str) -> str:
    """Return `SourceTopic.usual` for messages that `json.dumps` has written, with these fields in
    this order, and perhaps padding. A value is a regular expression."""
    fields = ", ".join(f'"{name}": {value}' for name, value in values.items())
    return rf'\{{{fields}(?:, "padding": "[A-Za-z0-9_-]*")?\}}'


def fault_of(value: bytes | None, topic: SourceTopic) -> Fault | None:
    """Return why a message of this topic is invalid; None if all engines read it alike."""
    if value is None:
        return Fault("", "no value (a tombstone)")
    if len(value) <= TEXT_BYTES and re.fullmatch(topic.usual.encode(), value):
        return None
    message = _parsed(value)
    return message if isinstance(message, Fault) else _fault_in(message, topic)


def _parsed(value: bytes) -> dict[str, Any] | Fault:
    """Return the fields of a JSON object, with numbers as they are written."""
    try:
        message = json.loads(
            value.decode(),
            object_pairs_hook=_object,
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_no_constant,
        )
    except _Repeated as repeated:
        return Fault(str(repeated), "more than once")
    except ValueError:
        return Fault("", f"not JSON: {_shown(value.decode(errors='backslashreplace'))}")
    except RecursionError:
        return Fault("", "nested too deeply")
    if not isinstance(message, dict):
        return Fault("", f"not a JSON object: {_shown(message)}")
    return message


def _fault_in(message: dict[str, Any], topic: SourceTopic) -> Fault | None:
    if fault := _missing(message, topic.fields):
        return fault
    if topic.due_field and not 0 < int(message[topic.due_field].text) <= LATEST_MS:
        value = _shown(message[topic.due_field])
        return Fault(topic.due_field, f"not a time from 1970 to 2262: {value}")
    if topic.records:
        return _fault_in_record(message, topic)
    return _harmful(message, topic.fields)


def _fault_in_record(message: dict[str, Any], topic: SourceTopic) -> Fault | None:
    """Return the fault in a message that must contain exactly one of the topic's records."""
    kind = int(message[topic.kind_field].text)
    if not 0 <= kind < len(topic.records):
        return Fault(topic.kind_field, f"not 0 to {len(topic.records) - 1}: {kind}")
    record = topic.records[kind]
    nested = message.get(record.name)
    if not isinstance(nested, dict):
        return Fault(record.name, "missing, or not an object")
    if fault := _missing(nested, record.fields) or _harmful(nested, record.fields):
        return Fault(f"{record.name}.{fault.field}", fault.reason)
    if others := [
        other.name for other in topic.records if other != record and other.name in message
    ]:
        return Fault(others[0], f"not expected if {topic.kind_field} is {kind}")
    return _harmful(message, (*topic.fields, record.name))


def _missing(message: dict[str, Any], fields: Mapping[str, Any]) -> Fault | None:
    """Return the first required field that is missing or does not match."""
    for name, wanted in fields.items():
        if name not in message:
            return Fault(name, "missing")
        if reason := _mismatch(message[name], wanted):
            return Fault(name, f"{reason}: {_shown(message[name])}")
    return None


def _harmful(message: dict[str, Any], required: Collection[str]) -> Fault | None:
    """Return the first field in addition to the required ones at which some parser may fail."""
    folded = {name.casefold() for name in required}
    for name, value in message.items():
        if name not in required and (reason := _harm(name, value, folded)):
            return Fault(_shown(name).strip("'"), reason)
    return None


def _object(fields: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in fields:
        if name in made:
            raise _Repeated(_shown(name).strip("'"))
        made[name] = value
    return made


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)  # Python reads NaN and Infinity


def _mismatch(value: object, wanted: type[int] | type[str] | re.Pattern[str]) -> str:
    """Return why a value does not match; empty if it does."""
    if wanted is int:
        if not isinstance(value, _Number) or not _INTEGER.fullmatch(value.text):
            return "not an integer"
        # The lowest of all is null in Deephaven.
        return "" if abs(int(value.text)) < 2**63 else "not an integer of 64 bits"
    if not isinstance(value, str):
        return "not a text"
    if reason := _text_fault(value):
        return reason
    if len(value.encode()) > TEXT_BYTES:
        return f"longer than {TEXT_BYTES:,} bytes"
    is_fit = not isinstance(wanted, re.Pattern) or wanted.fullmatch(value)
    return "" if is_fit else "not in the expected format"


def _harm(name: str, value: object, required: Collection[str]) -> str:
    """Return why some parser may fail at an additional field; empty if none does."""
    if name.casefold() in required:
        return "like a required field, except for upper and lower case"
    if not _NAME.fullmatch(name):
        return "a name with other characters than letters, digits, _ and -, or a long one"
    if isinstance(value, list | dict):
        return "an array or object"
    if isinstance(value, _Number) and not _NUMBER.fullmatch(value.text):
        return f"a number that is too long: {_shown(value)}"
    return _text_fault(value) if isinstance(value, str) else ""


def _text_fault(text: str) -> str:
    return "a text with U+0000 or half a surrogate pair" if _UNSAFE.search(text) else ""


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 1]}…"
