"""A fake stack, and topics of upserts in memory, for tests of engines without Kafka."""

import threading
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from racetrack.config import Settings, load
from racetrack.engines.shared.upsert.engine import OpenTopics
from racetrack.engines.shared.upsert.topics import Span, Topics, Written
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.stack.contract import ServiceClock, Stack
from racetrack.stack.elsewhere import RUN_NAME
from racetrack.stack.provided import NAME, Provided, remove_of_killed

KAFKA = KafkaEndpoint("127.0.0.1:54092")
AT_MS = 1_700_000_000_123  # the broker's time of each message


class FakeTopics(Topics):
    """Topics in memory with these messages."""

    def __init__(self, messages: Mapping[str, list[Written]]) -> None:
        self._messages = messages

    def __exit__(self, *_: object) -> None:
        pass

    def names(self) -> frozenset[str]:
        return frozenset(self._messages)

    def offsets(
        self, names: Collection[str], stop: threading.Event | None = None
    ) -> dict[str, Span]:
        return {name: (0, len(self._messages[name])) for name in names}

    def rows(self, name: str, span: Span) -> Iterator[Written]:
        yield from self.rows_between({name: span})[name]

    def rows_between(self, spans: Mapping[str, Span]) -> dict[str, list[Written]]:
        return {name: self._messages[name][begin:end] for name, (begin, end) in spans.items()}

    def newest(self, name: str, span: Span, but: Container[bytes]) -> list[Written]:
        rows = {row.key: row for row in self.rows_between({name: span})[name]}
        return [row for key, row in rows.items() if key not in but]


def topics(values: Mapping[str, Sequence[bytes]]) -> OpenTopics:
    """Return a function that opens topics with these values, each value with its own key."""
    messages = {
        name: [Written(name, n, AT_MS, b"%d" % n, value) for n, value in enumerate(of)]
        for name, of in values.items()
    }

    def open_topics(kafka: KafkaEndpoint) -> FakeTopics:
        assert kafka == KAFKA
        return FakeTopics(messages)

    return open_topics


def stack(
    settings: Settings | None = None,
    clocks: Mapping[str, ServiceClock] | None = None,
    /,
    **overrides: str,
) -> Stack:
    """Return a fake stack with the parts that engines use. Pass either all settings, or changed
    ones as `NAME=value`."""
    settings = settings or load(overrides)
    found = SimpleNamespace(
        settings=settings,
        runtime=settings.runtime,
        clocks=clocks or {},
        endpoints=SimpleNamespace(kafka=KAFKA, redis=f"127.0.0.1:{settings.redis_port}"),
        internal_endpoints=SimpleNamespace(kafka=KAFKA, registry="http://127.0.0.1:54081"),
        log_of=lambda service: Path(f"/logs/{service}.log"),
        program=lambda service, name: f"/parts/{service}/bin/{name}",
    )
    return cast(Stack, found)


def removed_of_killed_run(
    settings: Settings, services: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> tuple[str, Mapping[str, str]]:
    """Remove what a killed run with its own name left in the only provided service, as its watchdog
    does. Return what is printed, and the variables by which the watchdog knows what to remove."""
    provided = Provided(settings)
    assert provided.environment() == {}
    provided.check(services, print)
    variables = provided.environment()
    assert variables[NAME] == RUN_NAME
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    (line,) = remove_of_killed(variables)
    assert RUN_NAME in line
    return line, variables
