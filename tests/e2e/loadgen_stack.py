"""MySQL, the broker and the load generator without an engine, and the requests of tests to them."""

import contextlib
import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from confluent_kafka import Consumer, TopicPartition

from racetrack.config import Settings
from racetrack.probes.broker import TopicOffsets
from racetrack.probes.loadgen import Control
from racetrack.stack import net, processes
from racetrack.stack.native.stack import NativeStack
from tests.ports import free_ports

TOPIC = "pageviews"
SERVICES = ("mysql", "broker", "loadgen")


@dataclass(frozen=True)
class Message:
    """A pageview in the broker; `at_ms` is when it was handed to the Kafka client."""

    partition: int
    key: str
    value: dict[str, Any]
    at_ms: int


class LoadgenStack:
    """The three services beside any running stack, with their own name and ports. No purchases are
    made unless a test requests them."""

    def __init__(self, settings: Settings, logs: Path) -> None:
        names = ("kafka_port", "kafka_controller_port", "mysql_port", "loadgen_port")
        own = dict(zip(names, free_ports(len(names)), strict=True))
        name = f"{settings.stack_name}-loadgen"
        self.settings = settings.model_copy(
            update={**own, "stack_name": name, "purchases_per_second_start": 0}
        )
        self.native = NativeStack(self.settings)
        self._logs = logs
        self.broker = TopicOffsets(self.native.endpoints.kafka, TOPIC)
        # After the death of a worker, its last batch may have been handed over twice.
        self.may_repeat = False
        # The part of the end offsets that the counts of the running generator do not include.
        self.before = [0] * settings.events_partitions

    def up(self) -> None:
        """Start all three services."""
        self.native.prepare(SERVICES, print)
        self.native.start(SERVICES, self._logs, print)

    def down(self) -> None:
        """Stop all services, and check that nothing is left."""
        self.native.stop(print)
        assert processes.members(self.settings.stack_name) == []
        assert not processes.work_root(self.settings.stack_name).exists()

    def control(self) -> Control:
        return Control(self.settings.bind_address, self.settings.loadgen_port)

    def ask(self, command: str) -> str:
        with self.control() as control:
            return control.ask(command)

    def stats(self) -> dict[str, Any]:
        with self.control() as control:
            return control.stats()

    def watch(self, seconds: float) -> list[dict[str, Any]]:
        """Return the lines that `watch` prints within a time by the generator's clock."""
        with self.control() as control:
            lines = [json.loads(control.ask("watch"))]
            while lines[-1]["now_ms"] - lines[0]["now_ms"] < seconds * 1000:
                lines.append(json.loads(control.read()))
            return lines

    def rates(self, pageviews: int, purchases: int = 0) -> None:
        self.ask(f"set purchases_per_second {purchases}")
        self.ask(f"set events_per_second {pageviews}")

    def pause(self) -> tuple[list[int], list[int]]:
        """Stop the load; return the counts of pageviews handed over and published, by partition."""
        with self.control() as control:
            control.pause()
            counts = control.settled_counts()
        handed = counts["handed"]
        settled = [a + b for a, b in zip(handed, counts["refused"], strict=True)]
        extra = [a - b for a, b in zip(settled, counts["due"], strict=True)]
        assert min(extra) >= 0, counts
        assert self.may_repeat or not any(extra), counts
        expected = [a + b for a, b in zip(self.before, handed, strict=True)]
        end_offsets = self.broker.end_offsets_reaching(expected, 30)
        return handed, [b - a for a, b in zip(self.before, end_offsets, strict=True)]

    def read(self, since: Sequence[int]) -> list[Message]:
        """Return all pageviews from these offsets on, in order within each partition."""
        missing = sum(self.broker.end_offsets()) - sum(since)
        settings = self.native.endpoints.kafka.librdkafka({"group.id": "tests"})
        consumer = Consumer({**settings, "enable.auto.commit": False})
        found: list[Message] = []
        try:
            consumer.assign([TopicPartition(TOPIC, p, offset) for p, offset in enumerate(since)])
            while len(found) < missing:
                batch = consumer.consume(min(10_000, missing - len(found)), timeout=30)
                assert batch, f"{missing - len(found)} of {missing} pageviews did not come"
                found += [message_of(each) for each in batch]
        finally:
            consumer.close()
        return found

    def log(self) -> str:
        return self.native.log_of("loadgen").read_text()

    def kill(self, service: str) -> Callable[[], None]:
        """Kill all processes of a service at once; return a function that starts it again."""
        self.native.kill([service])
        members = processes.members(self.settings.stack_name)
        assert service not in {member.service for member in members}
        assert service not in self.native.died()
        return lambda: self.native.restart(service)

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        with contextlib.closing(net.mysql(self.settings).connect()) as connection:
            cursor = connection.cursor()
            cursor.execute(query)
            return list(cursor.fetchall())


def message_of(message: Any) -> Message:
    assert message.error() is None, message.error()
    value = json.loads(message.value())
    return Message(message.partition(), message.key().decode(), value, message.timestamp()[1])


def as_started(process: psutil.Process, log: Path) -> Callable[[], None]:
    """Return a function that starts a process again with its original command and environment."""
    argv, environment, folder = process.cmdline(), process.environ(), process.cwd()

    def start() -> None:
        with log.open("ab") as output:
            subprocess.Popen(
                argv,
                env=environment,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    return start
