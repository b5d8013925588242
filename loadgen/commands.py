"""Commands of the control socket: parses a line and returns the answer, without socket code."""

from __future__ import annotations

from enum import Enum
from typing import Callable, NamedTuple

from loadgen.config import MAX_RATE_PER_S, parse_rate_milli, show_rate

# Key of the main topic's rate; the same in every workload.
EVENTS = "events_per_second"
# Keys of the previous release, which the next one drops → the keys now.
EARLIER_KEYS = {"pageviews_per_second": EVENTS}
HELP = """\
Commands, one a line:
{rates}
  get KEY                       the current value of one of these
  stats                         counts, rates and lateness so far, as one line of JSON
  watch                         that line every 100 ms, until you send another line
  flush                         wait until everything handed over has left the Kafka client's queue
  help                          this
  quit                          end the conversation"""


class Load:
    """Load controlled by the control socket: the generator, or a fake in tests."""

    def rates(self) -> dict[str, str]:
        """Return the help text of each rate, by key."""
        raise NotImplementedError

    def get_rate_milli(self, key: str) -> int:
        """Return the rate of a key of `rates`, in thousandths per second."""
        raise NotImplementedError

    def set_rate_milli(self, key: str, milli_per_s: int) -> None:
        """Change a rate; takes effect within 50 ms."""
        raise NotImplementedError

    def stats_line(self) -> str:
        """Return the statistics as JSON without a line end."""
        raise NotImplementedError

    def flush(self, done: Callable[[str], None]) -> None:
        """Flush, and call `done` with the answer line when the flush has ended."""
        raise NotImplementedError


class Then(Enum):
    """Action of the server after an answer."""

    GO_ON = "go on"
    WATCH = "watch"
    FLUSH = "flush"
    CLOSE = "close"


class Answer(NamedTuple):
    """Answer to a command: the text without its line end (empty: no answer), and what the
    connection does next."""

    text: str
    then: Then = Then.GO_ON


class Commands:
    """Executes lines. Every error is an answer that begins with "Error:"."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._commands: dict[str, tuple[int, Callable[..., Answer]]] = {
            "set": (2, self._set),
            "get": (1, self._get),
            "stats": (0, self._stats),
            "watch": (0, self._watch),
            "flush": (0, self._flush),
            "help": (0, self._help),
            "quit": (0, self._quit),
        }

    def execute(self, line: bytes) -> Answer:
        """Return the answer to a line (with or without its end). Never raises for client input."""
        try:
            words = [word.decode("ascii") for word in line.split()]
        except UnicodeDecodeError:
            return Answer("Error: that is not text. Try: help")
        if not words:
            return Answer("")
        name, arguments = words[0].lower(), words[1:]
        if name not in self._commands:
            return Answer(f"Error: unknown command {_shown(words[0])}. Try: help")
        count, run = self._commands[name]
        if len(arguments) != count:
            takes = f"{count or 'no'} argument{'' if count == 1 else 's'}"
            return Answer(f"Error: {name} takes {takes}, {len(arguments)} given. Try: help")
        return run(*arguments)

    def _set(self, key: str, value: str) -> Answer:
        key = _current(key)
        if key not in self._load.rates():
            return self._unknown_key(key)
        milli = parse_rate_milli(value)
        if milli is None:
            return Answer(
                f"Error: {_shown(value)} is not a rate: a number from 0 to {MAX_RATE_PER_S}, "
                "at most three decimals."
            )
        old = self._load.get_rate_milli(key)
        self._load.set_rate_milli(key, milli)
        return Answer(
            f"Setting {key}: old value was {show_rate(old)}, new value is {show_rate(milli)}."
        )

    def _get(self, key: str) -> Answer:
        key = _current(key)
        if key not in self._load.rates():
            return self._unknown_key(key)
        return Answer(f"{key} {show_rate(self._load.get_rate_milli(key))}")

    def _stats(self) -> Answer:
        return Answer(self._load.stats_line())

    def _watch(self) -> Answer:
        return Answer(self._load.stats_line(), Then.WATCH)

    def _flush(self) -> Answer:
        return Answer("", Then.FLUSH)

    def _help(self) -> Answer:
        rates = (f"  {f'set {key} N':<30}{text}" for key, text in self._load.rates().items())
        return Answer(HELP.format(rates="\n".join(rates)))

    def _quit(self) -> Answer:
        return Answer("Goodbye.", Then.CLOSE)

    def _unknown_key(self, key: str) -> Answer:
        known = ", ".join(self._load.rates())
        return Answer(f"Error: unknown key {_shown(key)}. The keys: {known}")


def _current(key: str) -> str:
    """Return a key in lower case, and by its name in this release."""
    return EARLIER_KEYS.get(key.lower(), key.lower())


def _shown(text: str) -> str:
    """Return a client's word, printable and at most 40 characters long."""
    return repr(text[:40] + ("..." if len(text) > 40 else ""))
