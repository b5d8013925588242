"""Entry point `pypy3 -m loadgen`: prepares the database and the topics, then generates load until
SIGTERM or SIGINT. Settings: loadgen/config.py, and the workload's settings.py."""

from __future__ import annotations

import os
import signal
import sys
import time
from datetime import datetime, timezone

from loadgen import config as settings
from loadgen import host
from loadgen.generator import Generator
from loadgen.mysql import MySqlError, wait_and_seed
from loadgen.rdkafka import KafkaError, Library
from loadgen.topics import prepare
from loadgen.workload import SeedError, Workload, make

EXIT_FAILED, EXIT_SETTINGS = 1, 2


def log(text: str) -> None:
    """Print a line with the time."""
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    print(f"{now.replace('+00:00', 'Z')}  {text}", flush=True)


def start(config: settings.Config, workload: Workload) -> None:
    """Prepare the database and the topics, then generate load until a signal."""
    library = Library(config.librdkafka)
    python = f"{sys.version.split()[0]} ({sys.implementation.name})"
    log(f"Load generator on Python {python}, librdkafka {library.version()}")
    deadline_s = time.monotonic() + config.start_timeout_s
    database = workload.database()
    if database:
        log(f"Initializing {database.name} database...")
        wait_and_seed(database, config, deadline_s, log)
        log(f"Initializing {database.name} database DONE")
    workload.seed_beside(deadline_s, log)
    prepare(config, workload, library, deadline_s, log)
    Generator(config, workload, workload.events(library), database, log).run()


def main() -> int:
    """Return the exit code: 0 after a signal, 1 if MySQL, Kafka or another seeded store did not
    answer, 2 for an invalid setting."""
    # The generator installs its own handlers later; before that there is nothing to shut down.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: sys.exit(0))
    try:
        config = settings.load()
        if config.is_worker_host:
            host.serve(config, log)
        start(config, make(config, settings.Reader(os.environ)))
    except settings.ConfigError as error:
        print(f"loadgen: {error}", file=sys.stderr)
        return EXIT_SETTINGS
    except (MySqlError, SeedError, KafkaError) as error:
        print(f"loadgen: {error}", file=sys.stderr)
        return EXIT_FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
