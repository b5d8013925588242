"""Interface of a live session for its web server: the session, and the actions that a page or a
replay requests. docs/live.md describes the messages."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from racetrack import units
from racetrack.workloads import load_profile

NOTE_CHARACTERS = 500
FILE_PROFILE = load_profile.Recorded.name
Arguments = Mapping[str, str | int]
Message = dict[str, Any]


class Refused(Exception):
    """The reason why an action is not carried out. `status` is an HTTP status code."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


@dataclass(frozen=True)
class Action:
    """An action and its arguments. `by` is `user`, `replay` or `session`."""

    name: str
    arguments: Arguments = field(default_factory=dict)
    by: str = "user"


class LiveSession(Protocol):
    """A running session. Any thread may call any method; none of them blocks."""

    def hello(self) -> Message:
        """Return the message for a page that has just been opened, with history and events."""

    def sample(self) -> Message:
        """Measure now and return the message with the time and the value of each series."""

    def latest(self) -> Mapping[str, float | None]:
        """Measure now and return the newest value of every series."""

    def state(self) -> Message:
        """Return the state: rates, verdicts, services, and the actions that are possible now."""

    def events_after(self, number: int) -> Sequence[Message]:
        """Return the events whose numbers are above `number`, in order."""

    def end(self) -> Message | None:
        """Return the last message of a session that has ended; None while it runs."""

    def act(self, action: Action) -> Future[None]:
        """Carry out an action. The future has its result once the action has been recorded.

        Raises:
            Refused: the action can't be carried out now; also as the future's exception.
        """


def parse_action(name: str, given: Mapping[str, Any], by: str = "user") -> Action:
    """Check an action and its arguments.

    Raises:
        Refused: there is no such action (404), or an argument can't be used (400).
    """
    if name not in _ARGUMENTS:
        raise Refused(404, f"There is no action {name!r}. Actions: {', '.join(_ARGUMENTS)}.")
    wanted = _ARGUMENTS[name]
    if given.keys() != wanted.keys():
        fields = ", ".join(wanted) or "no field"
        raise Refused(
            400, f"{name} takes an object with {fields}, not {', '.join(given) or 'none'}."
        )
    try:
        return Action(name, {key: wanted[key](value) for key, value in given.items()}, by)
    except ValueError as error:
        raise Refused(400, f"{name}: {error}.") from None


def _rate(value: Any) -> int:
    """Return a rate that is given as a number or as text such as `5k`."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("a rate is a whole number or a text such as 5k")
    return units.parse_rate(str(value))


def _profile(value: Any) -> str:
    """Return a load profile in its normal form. Profiles in files are refused, because the page
    could read any file through them."""
    text = _text(value)
    if text.split()[0] == FILE_PROFILE:
        raise ValueError("a recorded profile can only be given on the command line, as --load")
    return str(load_profile.parse(text))


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("a text is missing")
    text = "".join(sign if sign.isprintable() else " " for sign in value).strip()
    if len(text) > NOTE_CHARACTERS:
        raise ValueError(f"the text has more than {NOTE_CHARACTERS} characters")
    return text


_TARGET: dict[str, Callable[[Any], str | int]] = {"target": _text}
_ARGUMENTS: dict[str, dict[str, Callable[[Any], str | int]]] = {
    "rate": {"per_s": _rate},
    "load": {"profile": _profile},
    "events": {"kind": _text, "per_s": _rate},
    "pause": _TARGET,
    "resume": _TARGET,
    "kill": _TARGET,
    "restart": _TARGET,
    "note": {"text": _text},
    "end": {},
}
