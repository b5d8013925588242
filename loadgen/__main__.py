"""`pypy3 -m loadgen`: prepare the shop and the topics, then generate load until told to stop.
Settings: loadgen/config.py.
"""

from __future__ import annotations

import signal
import sys
import time
from datetime import datetime, timezone

from loadgen import config as settings
from loadgen.generator import Generator
from loadgen.mysql import MySqlError, wait_and_seed
from loadgen.rdkafka import KafkaError, Library
from loadgen.topics import prepare

EXIT_FAILED, EXIT_SETTINGS = 1, 2


def log(text: str) -> None:
    """A line on standard output, with its time."""
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    print(f"{now.replace('+00:00', 'Z')}  {text}", flush=True)


def start(config: settings.Config) -> None:
    """Prepare, then run until a signal."""
    library = Library(config.librdkafka)
    python = f"{sys.version.split()[0]} ({sys.implementation.name})"
    log(f"Load generator on Python {python}, librdkafka {library.version()}")
    deadline_s = time.monotonic() + config.start_timeout_s
    log("Initializing shop database...")
    shop = wait_and_seed(config, deadline_s, log)
    log("Initializing shop database DONE")
    prepare(config, library, deadline_s, log)
    users_by_partition = library.partition_users(config.users, config.partitions)
    Generator(config, users_by_partition, shop, log).run()


def main() -> int:
    """The exit code: 0 after a signal, 1 if MySQL or Kafka never came, 2 if a setting can't be
    used.
    """
    # Until the generator has its own: before it runs there is nothing to end in order.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: sys.exit(0))
    try:
        start(settings.load())
    except settings.ConfigError as error:
        print(f"loadgen: {error}", file=sys.stderr)
        return EXIT_SETTINGS
    except (MySqlError, KafkaError) as error:
        print(f"loadgen: {error}", file=sys.stderr)
        return EXIT_FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
