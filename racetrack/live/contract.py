"""Interface of a live session for its web server. docs/live.md describes the messages."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Protocol

from racetrack.live.actions import Action

Message = dict[str, Any]


class LiveSession(Protocol):
    """A running session. Any thread may call any method; none of them blocks."""

    def hello(self) -> Message:
        """Return the message for a page that has just been opened, with history and events."""

    def sample(self) -> Message:
        """Measure now and return the message: time and values by series."""

    def latest(self) -> Mapping[str, float | None]:
        """Measure now and return the newest value of every series."""

    def state(self) -> Message:
        """Return the state: rates, verdicts, services, and what can be done now."""

    def events_after(self, number: int) -> Sequence[Message]:
        """Return the events whose number is greater, in order."""

    def end(self) -> Message | None:
        """Return the last message of a session that has ended; None while it runs."""

    def act(self, action: Action) -> Future[None]:
        """Carry out an action; the result is there when it has been recorded.

        Raises:
            Refused: the action can't be carried out now; also as the future's exception.
        """
