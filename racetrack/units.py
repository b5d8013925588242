"""Parsers of rates, durations and sizes, for the command line and settings. They raise ValueError
with a message for the user."""

import math
import re

# The load generator's highest rate.
MAX_RATE_PER_S = 10_000_000
BYTES_PER_GIB = 1 << 30

_RATE = re.compile(r"(\d+(?:\.\d+)?)([kKM]?)")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|)")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([kmgt])(?:i?b)?", re.IGNORECASE)
_THOUSANDS = {"": 1, "k": 1_000, "K": 1_000, "M": 1_000_000}
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_BYTES = {"k": 1 << 10, "m": 1 << 20, "g": BYTES_PER_GIB, "t": 1 << 40}


def parse_rate(text: str) -> int:
    """Parse a rate such as `5000`, `5k` or `1.5M`; return events per second."""
    text = text.strip()
    if re.fullmatch(r"\d{1,3}([,_ ']\d{3})+", text):
        plain = re.sub(r"\D", "", text)
        raise ValueError(f"{text!r} has thousands separators: write {plain}, or for example 5k")
    if not (parts := _RATE.fullmatch(text)):
        raise ValueError(f"{text!r} is not a rate such as 5000, 5k or 1.5M")
    rate = float(parts[1]) * _THOUSANDS[parts[2]]
    if rate > MAX_RATE_PER_S:
        raise ValueError(f"{text!r} is more than the load generator offers, {MAX_RATE_PER_S:,}/s")
    if not math.isclose(rate, round(rate), abs_tol=1e-9):
        raise ValueError(f"{text!r} is not a whole number of events per second")
    return round(rate)


def parse_duration_s(text: str, plain_unit: str = "s") -> float:
    """Parse a duration such as `20s`, `2m`, `1h` or `500ms`; return seconds.

    `plain_unit` is the unit of a number without one.
    """
    if not (parts := _DURATION.fullmatch(text.strip())):
        raise ValueError(f"{text!r} is not a duration such as 20s, 2m or 500ms")
    return float(parts[1]) * _SECONDS[parts[2] or plain_unit]


def format_rate(per_s: int) -> str:
    """Return a rate as `parse_rate` reads it: 50000 → `50k`, 1500 → `1500`."""
    for unit in ("M", "k"):
        if per_s and per_s % _THOUSANDS[unit] == 0:
            return f"{per_s // _THOUSANDS[unit]}{unit}"
    return str(per_s)


def format_duration_s(seconds: float) -> str:
    """Return seconds as `parse_duration_s` reads them: 10.0 → `10s`, 0.5 → `0.5s`."""
    return f"{seconds:.9f}".rstrip("0").rstrip(".") + "s"


def parse_milliseconds(text: str) -> int:
    """Parse a duration, by default in milliseconds; return whole milliseconds."""
    return round(1000 * parse_duration_s(text, plain_unit="ms"))


def parse_size_bytes(text: str) -> int:
    """Parse a size such as `512m`, `8g`, `8G` or `1.5GiB` (powers of 1,024); return bytes."""
    text = text.strip()
    if text.isdecimal():
        raise ValueError(f"{text!r} is a size without a unit: write {text}m or {text}g")
    parts = _SIZE.fullmatch(text)
    size = round(float(parts[1]) * _BYTES[parts[2].lower()]) if parts else 0
    if not size:
        raise ValueError(f"{text!r} is not a size such as 512m or 8g")
    return size


def parse_mebibytes(text: str) -> int:
    """Parse a size, by default in MiB; return whole MiB."""
    return int(text) if text.isdecimal() else parse_size_bytes(text) >> 20


def normal_size(text: str) -> str:
    """Return a size in the format of JVMs, Docker and tmpfs: `8g`, `1536m`."""
    size = parse_size_bytes(text)
    unit = next(unit for unit in "gmk" if size % _BYTES[unit] == 0 or unit == "k")
    return f"{size // _BYTES[unit]}{unit}"


def parse_cores(cpus: str) -> set[int]:
    """Parse a core list: `0,2-3` → {0, 2, 3}; an empty one has none."""
    cores: set[int] = set()
    for part in filter(None, cpus.split(",")):
        first, _, last = part.partition("-")
        cores |= set(range(int(first), int(last or first) + 1))
    return cores
