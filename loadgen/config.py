"""Settings of the load generator: environment variables, and the only definition of their defaults.
A workload's settings are in its folder."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass

from loadgen import workload

# A higher rate is probably a typing error ("100000000"), and would fill the broker's disk.
MAX_RATE_PER_S = 10_000_000
MAX_PARTITIONS = 1024
# One worker reaches well over twice this rate (bench/loadgen.sh). Half of its capacity leaves idle
# time in every millisecond, which keeps lateness low.
EVENTS_PER_WORKER_PER_S = 500_000

# Names of the previous release, which the next one drops → the names now.
EARLIER_NAMES = {
    "PAGEVIEWS_PER_SECOND_START": "EVENTS_PER_SECOND_START",
    "PAGEVIEWS_PARTITIONS": "EVENTS_PARTITIONS",
    "PAGEVIEWS_TOPIC": "EVENTS_TOPIC",
    "LOADGEN_PAGEVIEWS_PER_WORKER": "LOADGEN_EVENTS_PER_WORKER",
}


class ConfigError(Exception):
    """Invalid setting. The message is one line for the user: cause and remedy."""


@dataclass(frozen=True)
class Config:
    """Validated settings of the load generator. Units are in the names."""

    workload: str
    # Addresses (host:port) of the generator's further pods, and whether this is one of these pods.
    worker_hosts: tuple[str, ...]
    is_worker_host: bool
    command_host: str
    command_port: int
    kafka_bootstrap: str
    kafka_client: Mapping[str, str]  # further properties of librdkafka: secrets
    topic_prefix: str
    replication_factor: int
    mysql_host: str
    mysql_port: int
    mysql_user: str
    mysql_password: str
    mysql_database: str
    events_milli_per_s: int
    partitions: int
    acks: str
    linger_ms: float
    batch_bytes: int
    batch_messages: int
    queue_messages: int
    queue_kbytes: int
    give_up_ms: int
    message_timeout_ms: int
    backlog: int
    max_workers: int
    events_per_worker_per_s: int
    seed: int
    librdkafka: str
    start_timeout_s: int


def parse_rate_milli(text: str) -> int | None:
    """Parse a rate like "5000" or "0.5" into thousandths per second.

    Return None unless it is 0 to MAX_RATE_PER_S with at most three decimals."""
    whole, point, part = text.partition(".")
    digits = whole + part
    if not (
        digits.isascii() and digits.isdigit() and whole and len(digits) <= 16 and len(part) <= 3
    ):
        return None
    if point and not part:
        return None
    milli = int(whole) * 1000 + int((part + "000")[:3])
    return milli if milli <= MAX_RATE_PER_S * 1000 else None


def show_rate(milli: int) -> str:
    """Format thousandths per second: 5000000 -> "5000", 500 -> "0.5"."""
    if milli % 1000 == 0:
        return str(milli // 1000)
    return f"{milli // 1000}.{milli % 1000:03d}".rstrip("0")


def load(env: Mapping[str, str] | None = None) -> Config:
    """Load the settings from `env` (default: this process's environment).

    Raises ConfigError for the first invalid setting."""
    read = Reader(os.environ if env is None else env)
    host, port = read.endpoint("COMMAND_ENDPOINT", "127.0.0.1:8090")
    known = workload.names()
    name = read.choice("WORKLOAD", known[0], tuple(known))
    pod, _, number = read.text("RACETRACK_INSTANCE", "").rpartition("-")
    pods = read.whole("LOADGEN_REPLICAS", 1, 1, MAX_PARTITIONS) if pod else 1
    return Config(
        workload=name,
        worker_hosts=tuple(f"{pod}-{further}:{port}" for further in range(1, pods)),
        is_worker_host=number not in ("", "0"),
        command_host=host,
        command_port=port,
        kafka_bootstrap=read.text("KAFKA_BOOTSTRAP", "127.0.0.1:9092"),
        kafka_client=read.properties("KAFKA_LIBRDKAFKA_CONFIG"),
        topic_prefix=read.text("KAFKA_TOPIC_PREFIX", ""),
        replication_factor=int(read.text("KAFKA_REPLICATION_FACTOR", "-1")),
        mysql_host=read.text("MYSQL_HOST", "127.0.0.1"),
        mysql_port=read.whole("MYSQL_PORT", 3306, 1, 65535),
        mysql_user=read.text("MYSQL_USER", name),
        mysql_password=read.secret("MYSQL_PASSWORD"),
        mysql_database=read.text("MYSQL_DATABASE", name),
        events_milli_per_s=read.rate("EVENTS_PER_SECOND_START", "50"),
        partitions=read.whole("EVENTS_PARTITIONS", 6, 1, MAX_PARTITIONS),
        acks=read.choice("LOADGEN_ACKS", "0", ("0", "1", "all")),
        linger_ms=read.number("LOADGEN_LINGER_MS", 5.0, 0.0, 1000.0),
        batch_bytes=read.whole("LOADGEN_BATCH_BYTES", 1_000_000, 1_000, 100_000_000),
        batch_messages=read.whole("LOADGEN_BATCH_MESSAGES", 10_000, 1, 1_000_000),
        queue_messages=read.whole("LOADGEN_QUEUE_MESSAGES", 1_000_000, 1_000, 10_000_000),
        queue_kbytes=read.whole("LOADGEN_QUEUE_KBYTES", 524_288, 1_024, 2_097_151),
        give_up_ms=read.whole("LOADGEN_GIVE_UP_MS", 60_000, 1, 600_000),
        message_timeout_ms=read.whole("LOADGEN_MESSAGE_TIMEOUT_MS", 300_000, 1_000, 86_400_000),
        backlog=read.whole("LOADGEN_PURCHASE_BACKLOG", 200_000, 1, 1_000_000),
        max_workers=read.whole("LOADGEN_MAX_WORKERS", os.cpu_count() or 1, 1, 256),
        events_per_worker_per_s=read.whole(
            "LOADGEN_EVENTS_PER_WORKER", EVENTS_PER_WORKER_PER_S, 1, MAX_RATE_PER_S
        ),
        seed=read.whole("LOADGEN_SEED", 42, 0, 2**63 - 1),
        librdkafka=read.text("LIBRDKAFKA", "librdkafka.so.1"),
        start_timeout_s=read.whole("LOADGEN_START_TIMEOUT_S", 120, 1, 3600),
    )


class Reader:
    """Reads settings of the generator or a workload from a mapping. An empty value counts as not
    set, as in compose files."""

    def __init__(self, env: Mapping[str, str]) -> None:
        old = {name: env[name] for name in EARLIER_NAMES if env.get(name, "").strip()}
        self._env = {**env, **{EARLIER_NAMES[name]: value for name, value in old.items()}}
        for name, value in old.items():
            now = EARLIER_NAMES[name]
            if env.get(now, value).strip() not in ("", value.strip()):
                raise ConfigError(
                    f"{name}={_short(value)} can't be used: it is the old name of {now}, which is"
                    f" {_short(env[now])}. Remove it."
                )

    def text(self, name: str, default: str) -> str:
        return self._env.get(name, "").strip() or default

    def secret(self, name: str) -> str:
        return self._env.get(name, "")

    def properties(self, name: str) -> Mapping[str, str]:
        found = json.loads(self.text(name, "{}"))
        return {str(key): str(value) for key, value in found.items()}

    def whole(self, name: str, default: int, low: int, high: int) -> int:
        text = self.text(name, str(default))
        if text.isascii() and text.isdigit() and len(text) < 20 and low <= int(text) <= high:
            return int(text)
        raise ConfigError(
            f"{name}={_short(text)} can't be used: it must be a whole number from {low} to {high}."
        )

    def size(self, name: str, low: int, high: int) -> int:
        """Return the size to which messages are padded; 0, the default: no padding."""
        size = self.whole(name, 0, 0, high)
        if 0 < size < low:
            raise ConfigError(
                f"{name}={size} can't be used: it must be 0, or a whole number from {low} to"
                f" {high}."
            )
        return size

    def number(self, name: str, default: float, low: float, high: float) -> float:
        text = self.text(name, str(default))
        try:
            value = float(text)
        except ValueError:
            value = float("nan")
        if low <= value <= high:
            return value
        raise ConfigError(
            f"{name}={_short(text)} can't be used: it must be a number from {low:g} to {high:g}."
        )

    def rate(self, name: str, default: str) -> int:
        text = self.text(name, default)
        milli = parse_rate_milli(text)
        if milli is None:
            raise ConfigError(
                f"{name}={_short(text)} can't be used: "
                f"it must be a number per second from 0 to {MAX_RATE_PER_S}."
            )
        return milli

    def choice(self, name: str, default: str, allowed: tuple[str, ...]) -> str:
        text = self.text(name, default)
        text = "all" if text == "-1" and "all" in allowed else text
        if text in allowed:
            return text
        raise ConfigError(
            f"{name}={_short(text)} can't be used: it must be one of {', '.join(allowed)}."
        )

    def endpoint(self, name: str, default: str) -> tuple[str, int]:
        text = self.text(name, default)
        host, _, port = text.rpartition(":")
        if host and port.isascii() and port.isdigit() and len(port) < 6 and int(port) <= 65535:
            return host.strip("[]"), int(port)
        raise ConfigError(
            f"{name}={_short(text)} can't be used: it must be host:port, like 127.0.0.1:8090."
        )


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
