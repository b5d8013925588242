"""Initial data in Redis, as in Yahoo's benchmark: all campaigns, and the campaign of each ad."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Callable

from loadgen.workload import SeedError

from racetrack.workloads.ads.load.database import seeded
from racetrack.workloads.ads.load.settings import AdsSettings

CAMPAIGNS = "campaigns"
ADS_AT_ONCE = 1_000
ANSWER_TIMEOUT_S = 10


def commands(settings: AdsSettings) -> Iterator[list[str]]:
    """Yield commands that store the initial rows of MySQL in Redis. Repeating them is harmless."""
    campaigns, ads = seeded(settings)
    for start in range(0, len(ads.rows), ADS_AT_ONCE):
        pairs = ads.rows[start : start + ADS_AT_ONCE]
        yield ["MSET", *(str(value) for pair in pairs for value in pair)]
    yield ["SADD", CAMPAIGNS, *(str(campaign) for (campaign,) in campaigns.rows)]


def encoded(command: list[str]) -> bytes:
    """Encode a command in Redis's protocol: an array of strings with their lengths."""
    words = [word.encode() for word in command]
    parts = [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
    return b"".join([b"*%d\r\n" % len(words), *parts])


def wait_and_seed(
    where: tuple[str, int], settings: AdsSettings, deadline_s: float, log: Callable[[str], None]
) -> None:
    """Store the initial data as soon as Redis answers.

    Raises SeedError if Redis refuses, or if it does not answer by `deadline_s`, a time of
    `time.monotonic`."""
    name = f"Redis at {where[0]}:{where[1]}"
    while True:
        try:
            _seed(where, name, settings)
            campaigns = settings.campaigns + settings.partitions  # with those for tracer events
            log(f"Seeded {name} with {campaigns} campaigns and their ads")
            return
        except OSError as error:
            if time.monotonic() > deadline_s:
                raise SeedError(
                    f"{name} did not answer: {error}. Start it, or unset LOADGEN_REDIS."
                ) from error
            time.sleep(0.1)  # wait between connection attempts


def _seed(where: tuple[str, int], name: str, settings: AdsSettings) -> None:
    connection = socket.create_connection(where, timeout=ANSWER_TIMEOUT_S)
    with connection, connection.makefile("rb") as answers:
        for command in commands(settings):
            connection.sendall(encoded(command))
            answer = answers.readline()
            if not answer:
                raise ConnectionError("it closed the connection")
            if not answer.startswith((b"+OK", b":")):
                raise SeedError(f"{name} refused {command[0]}: {answer.decode().strip()}")
