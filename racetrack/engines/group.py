"""A group of engines that read the same input, which the harness handles like one engine."""

import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from racetrack.config import Settings
from racetrack.engines.contract import Engine, Progress, Summary
from racetrack.errors import UsageError
from racetrack.plugins import JOIN
from racetrack.stack.contract import Stack
from racetrack.workloads.contract import find_workload


class EngineGroup(Engine):
    """Engines that read the same input on one stack. The group needs the services of all its
    members. Each member has views and progress of its own; the group has none."""

    def __init__(self, members: Sequence[Engine]) -> None:
        """Create a group.

        Raises:
            UsageError: two of these engines can't read the same input.
        """
        self._members = tuple(members)
        self.name = JOIN.join(member.name for member in members)
        self.title = " and ".join(member.title for member in members)
        self.needs = _union(member.needs for member in members)
        self.services = _union(member.services for member in members)
        first, *others = (member.runtimes for member in members)
        self.runtimes = tuple(name for name in first if all(name in other for other in others))
        self._require_separate()

    @property
    def members(self) -> tuple[Engine, ...]:
        """The engines of this group."""
        return self._members

    def _require_separate(self) -> None:
        names = [member.name for member in self._members]
        if twice := [name for name, count in Counter(names).items() if count > 1]:
            raise UsageError(f"{twice[0]} is named twice: each engine can run once on one input.")
        if not self.runtimes:
            where = "; ".join(f"{e.title}: {' or '.join(e.runtimes)}" for e in self._members)
            raise UsageError(f"{self.title} have no common runtime ({where}). Run them one by one.")
        used = Counter(
            place for member in self._members for place in (*member.services, *member.writes_to)
        )
        if both := [place for place, count in used.items() if count > 1]:
            raise UsageError(
                f"{self.title} can't read one input: both use {both[0]}, and would overwrite each"
                " other's results. Run them one by one."
            )

    def needs_in(self, settings: Settings) -> tuple[str, ...]:
        """Return the services that the members need."""
        return _union(member.needs_in(settings) for member in self._members)

    def services_in(self, settings: Settings) -> tuple[str, ...]:
        """Return the services of all members."""
        return _union(member.services_in(settings) for member in self._members)

    def processes(self, stack: Stack) -> Mapping[str, list[int]]:
        """Return the processes of all members."""
        return dict(
            chain.from_iterable(member.processes(stack).items() for member in self._members)
        )

    def check(self, stack: Stack) -> None:
        """Check each member, and check that all members write to the shared topic `Workload.sink`
        in the same format."""
        for member in self._members:
            member.check(stack)
        formats = {
            member.title: member.sink_format for member in self._members if member.script_ending
        }
        sink = find_workload(stack.settings.workload).sink
        if sink and len(set(formats.values())) > 1:
            listed = ", ".join(f"{title}: {name}" for title, name in formats.items())
            raise UsageError(
                f"{self.title} can't read one input: they write the topic {sink} in different"
                f" formats ({listed}), and could not read it back. Run them one by one."
            )

    def prepare_inputs(self, stack: Stack) -> None:
        """Create what the members' scripts expect but can't create themselves, such as topics."""
        for member in self._members:
            member.prepare_inputs(stack)

    def load_demo(self, stack: Stack) -> None:
        """Load the demo of each member, one after the other."""
        for member in self._members:
            member.load_demo(stack)

    def updates(
        self,
        stack: Stack,  # noqa: ARG002
        stop: threading.Event,  # noqa: ARG002
    ) -> Iterator[Summary | Progress]:
        """Raise an error: a group has no count of its own.

        Raises:
            TypeError: always.
        """
        raise TypeError(f"{self.name} is a group: follow its members.")

    def usage_hints(self, stack: Stack) -> list[str]:
        """Return the hints of all members."""
        return [line for member in self._members for line in member.usage_hints(stack)]


def _union(names: Iterable[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain.from_iterable(names)))
