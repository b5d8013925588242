"""Load profiles, which define the rate of the main topic over time. Each kind of profile has a
name, and each profile has a text form, such as `spike 5k 50k 10s`."""

import csv
import difflib
import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Self

from racetrack import units

# Seconds at the base rate before and after a spike.
SPIKE_LEAD_S = 10.0
# Interval at which a continuously changing rate is set.
TICK_S = 1.0
NEVER_S = math.inf
Piece = tuple[float, int]  # start in seconds since the profile began, and rate


class LoadProfile(ABC):
    """Events per second of the main topic as a function of the seconds since the profile began.

    `str` returns the text that `parse` accepts. `rate_at` is also defined after `duration_s`, since
    a run may last longer."""

    name: ClassVar[str]
    form: ClassVar[str]  # syntax of the text after the name
    example: ClassVar[str]

    @property
    def peak_s(self) -> tuple[float, float] | None:
        """Begin and end, in seconds, of a peak from which the engine has to recover; None without
        one."""
        return None

    @classmethod
    @abstractmethod
    def from_text(cls, text: str) -> Self:
        """Parse the text after the name.

        Raises:
            ValueError: the text can't be parsed; the message contains the reason.
        """

    @property
    @abstractmethod
    def duration_s(self) -> float:
        """Seconds that the profile lasts; 0 for a constant rate."""

    @abstractmethod
    def rate_at(self, elapsed_s: float) -> int:
        """Return the events per second, `elapsed_s` seconds after the profile began."""

    @abstractmethod
    def next_change_s(self, elapsed_s: float) -> float:
        """Return the next time at which the rate changes; NEVER_S if there is none."""

    def rate_until_next_change(self, elapsed_s: float) -> int:
        """Return the rate to set at `elapsed_s`, which stays set until the next change: the
        profile's rate in the middle of this interval."""
        until_s = self.next_change_s(elapsed_s)
        return self.rate_at(elapsed_s if until_s == NEVER_S else (elapsed_s + until_s) / 2)

    @property
    def mean_per_s(self) -> float:
        """Mean of the rates that are set, over `duration_s` seconds."""
        at_s, events = 0.0, 0.0
        while at_s < self.duration_s:
            until_s = min(self.next_change_s(at_s), self.duration_s)
            events += self.rate_until_next_change(at_s) * (until_s - at_s)
            at_s = until_s
        return events / self.duration_s if self.duration_s else float(self.rate_at(0.0))


class _InPieces(LoadProfile):
    """A profile that consists of pieces with constant rates."""

    @property
    @abstractmethod
    def pieces(self) -> tuple[Piece, ...]:
        """Pieces in the order of time. The first begins at second 0."""

    def rate_at(self, elapsed_s: float) -> int:
        return self.pieces[max(0, self._piece_at(elapsed_s))][1]

    def next_change_s(self, elapsed_s: float) -> float:
        later = self._piece_at(elapsed_s) + 1
        return self.pieces[later][0] if later < len(self.pieces) else NEVER_S

    def _piece_at(self, elapsed_s: float) -> int:
        return bisect_right(self.pieces, elapsed_s, key=lambda piece: piece[0]) - 1


@dataclass(frozen=True)
class Constant(_InPieces):
    """A constant rate."""

    name, form, example = "constant", "RATE", "constant 5k"
    per_s: int

    @classmethod
    def from_text(cls, text: str) -> Self:
        (rate,) = _words(text, 1)
        return cls(units.parse_rate(rate))

    def __str__(self) -> str:
        return f"{self.name} {units.format_rate(self.per_s)}"

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return ((0.0, self.per_s),)

    @property
    def duration_s(self) -> float:
        return 0.0


@dataclass(frozen=True)
class Steps(_InPieces):
    """Several rates, each for the same time. The last rate continues afterwards."""

    name, form, example = "steps", "RATE,RATE… EACH", "steps 1k,5k,20k 30s"
    rates: tuple[int, ...]
    each_s: float

    @classmethod
    def from_text(cls, text: str) -> Self:
        rates, duration = _words(text, 2)
        return cls(tuple(map(units.parse_rate, rates.split(","))), _duration_s(duration))

    def __str__(self) -> str:
        rates = ",".join(map(units.format_rate, self.rates))
        return f"{self.name} {rates} {units.format_duration_s(self.each_s)}"

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return tuple((number * self.each_s, rate) for number, rate in enumerate(self.rates))

    @property
    def duration_s(self) -> float:
        return len(self.rates) * self.each_s


@dataclass(frozen=True)
class Spike(_InPieces):
    """A base rate, with a peak that begins after SPIKE_LEAD_S and lasts for `for_s`."""

    name, form, example = "spike", "BASE PEAK DURATION", "spike 5k 50k 10s"
    base_per_s: int
    peak_per_s: int
    for_s: float

    def __post_init__(self) -> None:
        if self.peak_per_s <= self.base_per_s:
            raise ValueError(f"its peak, {self.peak_per_s:,}/s, is not above its base")

    @classmethod
    def from_text(cls, text: str) -> Self:
        base, peak, lasts = _words(text, 3)
        return cls(units.parse_rate(base), units.parse_rate(peak), _duration_s(lasts))

    def __str__(self) -> str:
        rates = f"{units.format_rate(self.base_per_s)} {units.format_rate(self.peak_per_s)}"
        return f"{self.name} {rates} {units.format_duration_s(self.for_s)}"

    @property
    def peak_s(self) -> tuple[float, float]:
        return SPIKE_LEAD_S, SPIKE_LEAD_S + self.for_s

    @property
    def pieces(self) -> tuple[Piece, ...]:
        begin_s, end_s = self.peak_s
        return ((0.0, self.base_per_s), (begin_s, self.peak_per_s), (end_s, self.base_per_s))

    @property
    def duration_s(self) -> float:
        return self.peak_s[1] + SPIKE_LEAD_S


@dataclass(frozen=True)
class Ramp(LoadProfile):
    """A rate that rises or falls linearly and then stays constant."""

    name, form, example = "ramp", "FROM TO DURATION", "ramp 1k 50k 60s"
    from_per_s: int
    to_per_s: int
    for_s: float

    @classmethod
    def from_text(cls, text: str) -> Self:
        begin, end, lasts = _words(text, 3)
        return cls(units.parse_rate(begin), units.parse_rate(end), _duration_s(lasts))

    def __str__(self) -> str:
        rates = f"{units.format_rate(self.from_per_s)} {units.format_rate(self.to_per_s)}"
        return f"{self.name} {rates} {units.format_duration_s(self.for_s)}"

    @property
    def duration_s(self) -> float:
        return self.for_s

    def rate_at(self, elapsed_s: float) -> int:
        share = min(max(elapsed_s / self.for_s, 0.0), 1.0)
        return round(self.from_per_s + (self.to_per_s - self.from_per_s) * share)

    def next_change_s(self, elapsed_s: float) -> float:
        return min(_next_tick_s(elapsed_s), self.for_s) if elapsed_s < self.for_s else NEVER_S


@dataclass(frozen=True)
class Sine(LoadProfile):
    """An endless sine wave between two rates, which begins at the lower rate."""

    name, form, example = "sine", "LOW HIGH PERIOD", "sine 5k 20k 60s"
    low_per_s: int
    high_per_s: int
    period_s: float

    def __post_init__(self) -> None:
        if self.high_per_s <= self.low_per_s:
            raise ValueError(f"its high rate, {self.high_per_s:,}/s, is not above its low rate")

    @classmethod
    def from_text(cls, text: str) -> Self:
        low, high, period = _words(text, 3)
        return cls(units.parse_rate(low), units.parse_rate(high), _duration_s(period))

    def __str__(self) -> str:
        rates = f"{units.format_rate(self.low_per_s)} {units.format_rate(self.high_per_s)}"
        return f"{self.name} {rates} {units.format_duration_s(self.period_s)}"

    @property
    def duration_s(self) -> float:
        return self.period_s

    def rate_at(self, elapsed_s: float) -> int:
        share = (1 - math.cos(2 * math.pi * elapsed_s / self.period_s)) / 2
        return round(self.low_per_s + (self.high_per_s - self.low_per_s) * share)

    def next_change_s(self, elapsed_s: float) -> float:
        return _next_tick_s(elapsed_s)


@dataclass(frozen=True)
class Recorded(_InPieces):
    """Rates from a CSV file with rows of seconds and events per second. Time counts from the first
    row. Each rate lasts until the next row; the last rate continues afterwards."""

    name, form, example = "recorded", "FILE.csv", "recorded day.csv"
    path: str
    rows: tuple[Piece, ...] = field(repr=False)

    @classmethod
    def from_text(cls, text: str) -> Self:
        return cls(text, _read(Path(text)))

    def __str__(self) -> str:
        return f"{self.name} {self.path}"

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return self.rows

    @property
    def duration_s(self) -> float:
        return self.rows[-1][0]


PROFILES: tuple[type[LoadProfile], ...] = (Constant, Ramp, Steps, Spike, Sine, Recorded)


def parse(text: str) -> LoadProfile:
    """Parse a load profile such as `spike 5k 50k 10s`.

    Raises:
        ValueError: the text is not a load profile; the message is for the user.
    """
    name, _, rest = text.strip().partition(" ")
    kind = next((profile for profile in PROFILES if profile.name == name), None)
    if not kind:
        names = [profile.name for profile in PROFILES]
        near = difflib.get_close_matches(name, names, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise ValueError(
            f"{text!r} is not a load profile.{hint} It begins with one of {', '.join(names)}"
        )
    try:
        profile = kind.from_text(rest.strip())
        if not profile.mean_per_s:
            raise ValueError("its rate is always 0")
    except ValueError as error:
        raise ValueError(
            f"{text!r} is not a load profile: {error}. Write {kind.name} {kind.form}, such as"
            f" {kind.example!r}"
        ) from None
    return profile


def _words(text: str, count: int) -> list[str]:
    words = text.split()
    if len(words) != count:
        raise ValueError(f"it has {len(words)} values, not {count}")
    return words


def _duration_s(text: str) -> float:
    seconds = units.parse_duration_s(text)
    if not seconds:
        raise ValueError(f"the duration {text!r} is 0")
    return seconds


def _next_tick_s(elapsed_s: float) -> float:
    return (math.floor(elapsed_s / TICK_S) + 1) * TICK_S


def _read(path: Path) -> tuple[Piece, ...]:
    """Return the rows of a CSV file, with seconds counted from the first row. A header is skipped.

    Raises:
        ValueError: the file or a row can't be read.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = [(number, row) for number, row in enumerate(csv.reader(file), 1) if any(row)]
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"the file {str(path)!r} can't be read ({error})") from None
    if rows and not _is_number(rows[0][1][0]):
        rows = rows[1:]
    if len(rows) < 2:
        raise ValueError(f"{path} has fewer than two rows of seconds and rates")
    times = [_row(path, number, row) for number, row in rows]
    for (number, _), (before, after) in zip(rows[1:], pairwise(times), strict=True):
        if after[0] <= before[0]:
            raise ValueError(f"{path}, line {number}: its seconds do not increase")
    first_s = times[0][0]
    return tuple((at_s - first_s, rate) for at_s, rate in times)


def _row(path: Path, number: int, row: list[str]) -> Piece:
    try:
        at, rate = row
        if _is_number(rate):  # recorded rates may have decimals, which `parse_rate` rejects
            rate = str(round(float(rate)))
        at_s = float(at)
        if not math.isfinite(at_s):
            raise ValueError(f"{at!r} is not a number of seconds")
        return at_s, units.parse_rate(rate)
    except ValueError as error:
        raise ValueError(f"{path}, line {number}: {error}") from None


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False
