"""Long garbage collections of engines, from the lines that JVMs log (`jvm.LOG_GC_PAUSES`)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

LONG_MS = 100.0  # shorter pauses hardly show in a lag that is sampled ten times a second
# Collections that follow each other are one event, since a full heap causes several a second.
ONE_EVENT_PER_S = 10.0
_PAUSE = re.compile(
    rb"\[\d+ms\]\[gc *\] GC\(\d+\) (Pause [^\n]*?) (\d+[KMG])->(\d+[KMG])\(\d+[KMG]\) ([\d.]+)ms$",
    re.MULTILINE,
)


@dataclass
class _Log:
    """A service's log, how much of it has been read, and the garbage-collection pauses in it that
    have not been reported yet."""

    path: Path
    read_bytes: int
    pauses: list[tuple[str, str, str, float]] = field(default_factory=list)
    event_s: float = -ONE_EVENT_PER_S

    def read(self) -> None:
        """Read the lines that are new."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.read_bytes)
                new = file.read()
        except OSError:  # the service is being restarted
            return
        complete = new[: new.rfind(b"\n") + 1]
        self.read_bytes += len(complete)
        for what, before, after, took_ms in _PAUSE.findall(complete):
            if float(took_ms) >= LONG_MS:
                kind = (what.decode(), before.decode(), after.decode())
                self.pauses.append((*kind, float(took_ms)))


class CollectionWatch:
    """Follows the logs of services from their current ends."""

    def __init__(self, logs: Mapping[str, Path]) -> None:
        self._logs = {
            service: _Log(path, path.stat().st_size if path.is_file() else 0)
            for service, path in logs.items()
        }

    def new(self, now_s: float) -> list[tuple[str, str]]:
        """Return the service and a text for each service with new collections of LONG_MS or more.
        `now_s` is a monotonic time."""
        found = []
        for service, log in self._logs.items():
            log.read()
            if log.pauses and now_s - log.event_s >= ONE_EVENT_PER_S:
                found.append((service, _text(service, log.pauses)))
                log.pauses, log.event_s = [], now_s
        return found


def _text(service: str, pauses: list[tuple[str, str, str, float]]) -> str:
    what, before, after, longest_ms = max(pauses, key=lambda pause: pause[3])
    kind = what.removeprefix("Pause ")
    text = f"garbage collection stopped {service} for {longest_ms / 1000:.2f} s"
    if len(pauses) > 1:
        all_s = sum(pause[3] for pause in pauses) / 1000
        text = f"{len(pauses)} garbage collections stopped {service} for {all_s:.2f} s"
        kind = f"longest: {kind}"
    return f"{text} ({kind}, {before} → {after})"
