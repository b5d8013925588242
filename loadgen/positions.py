"""Reports the positions of derived events in the main topic to a topic of their own."""

from __future__ import annotations

from collections import deque
from typing import Any

from loadgen.derived import DerivedEvent
from loadgen.rdkafka import Client


class Positions:
    """Writes a message for each derived event: its partition, its number (0-based), its position,
    which is the number of messages of its partition up to and including it, and its due time
    (epoch milliseconds)."""

    def __init__(self, client: Client, topic: str, ffi: Any) -> None:
        self._client, self._topic, self._ffi = client, client.topic(topic), ffi
        self._waiting: deque[bytes] = deque()

    def note(self, event: DerivedEvent, position: int, due_ms: int) -> None:
        """Queue the report of an event that was handed to librdkafka."""
        self._waiting.append(
            b'{"partition":%d,"number":%d,"position":%d,"due_ms":%d}'
            % (event.partition, event.number, position, due_ms)
        )

    def send(self) -> None:
        """Hand the queued reports to librdkafka. Keep those for which its queue has no room."""
        if not self._waiting:
            return
        texts = [self._ffi.new("char[]", text) for text in self._waiting]
        messages = self._ffi.new("rd_kafka_message_t[]", len(texts))
        for message, text in zip(messages, texts):
            message.payload, message.len = text, len(text) - 1
        for _ in range(self._client.produce(self._topic, 0, messages, len(texts)).used):
            self._waiting.popleft()
