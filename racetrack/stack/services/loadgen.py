"""The load generator: a separate program on PyPy that itself waits for the broker, and for MySQL if
the workload has tables."""

import socket
from collections.abc import Mapping

from racetrack import plugins
from racetrack.config import REPO, Settings, own_names, revealed
from racetrack.stack import net
from racetrack.stack.service import Context, Launch, NotReady

GREETING = b"LOADGEN Connected."
# Size of PyPy's nursery (its young generation). The default depends on the cache size in
# /proc/cpuinfo: 240 MB per process on one machine, 4 MB on another.
PYPY = {"PYPY_GC_NURSERY": "4MB"}


class Loadgen:
    """The load generator as a native service."""

    name = "loadgen"
    parts = ("loadgen",)
    after = ()
    ready_within_s = 90.0

    def ports(self, settings: Settings) -> Mapping[str, int]:
        return {"LOADGEN_PORT": settings.loadgen_port}

    def launch(self, context: Context) -> Launch:
        python = context.parts["loadgen"] / "bin/pypy3"
        return Launch(argv=[str(python), "-m", "loadgen"], env=environment(context), cwd=REPO)

    def check(self, context: Context) -> None:
        """Check that the control port sends its greeting: the port opens when database and topics
        exist."""
        settings = context.settings
        try:
            with socket.create_connection(
                (net.host(settings), settings.loadgen_port), timeout=2
            ) as control:
                heard = control.recv(len(GREETING), socket.MSG_WAITALL)
        except OSError as error:
            raise NotReady(
                f"its control port {settings.loadgen_port} does not answer ({error});"
                " it opens when the database is seeded"
            ) from None
        if heard != GREETING:
            raise NotReady(f"its control port sent {heard!r} instead of {GREETING.decode()!r}")

    def versions(self, context: Context) -> Mapping[str, str]:
        return {"loadgen": (context.parts["loadgen"] / "VERSION").read_text().strip()}


def environment(context: Context) -> dict[str, str]:
    """Return the variables that `loadgen/config.py` and the workload's settings read."""
    settings = context.settings
    mysql = net.mysql(settings)
    library = next((context.parts["loadgen"] / "lib").glob("librdkafka*.so*"))
    return {
        "WORKLOAD": settings.workload,
        "COMMAND_ENDPOINT": net.endpoint(settings.bind_address, settings.loadgen_port),
        **net.kafka(settings).environment(),
        "MYSQL_HOST": mysql.host,
        "MYSQL_PORT": str(mysql.port),
        "MYSQL_USER": mysql.writer,
        "MYSQL_PASSWORD": mysql.writer_password,
        "MYSQL_DATABASE": mysql.database,
        "PURCHASES_PER_SECOND_START": str(settings.purchases_per_second_start),
        "EVENTS_PER_SECOND_START": str(settings.events_per_second_start),
        "TRACER_EVENTS_PER_SECOND": str(settings.tracer_events_per_second),
        "UPDATES_PER_SECOND": str(settings.updates_per_second),
        "DELETES_PER_SECOND": str(settings.deletes_per_second),
        "EVENTS_PARTITIONS": str(settings.events_partitions),
        "LOADGEN_ACKS": settings.loadgen_acks,
        "LOADGEN_SEED": str(settings.loadgen_seed),
        "LOADGEN_REDIS": net.redis(settings) if "redis" in context.services else "",
        **_workload_settings(settings),
        "LIBRDKAFKA": str(library),
        # Its peers may still be downloading; the stack has a time limit of its own.
        "LOADGEN_START_TIMEOUT_S": "3600",
        "PYTHONDONTWRITEBYTECODE": "1",
        **PYPY,
    }


def _workload_settings(settings: Settings) -> dict[str, str]:
    """Return the workload's own settings."""
    own = own_names(plugins.of_all_workloads("settings").get(settings.workload))
    values = revealed(settings)
    return {name: values[name] for name in sorted(map(str.upper, own))}


SERVICE = Loadgen()
