"""Service of Flink's SQL gateway. Without FLINK_JOBMANAGER (see settings.py), it runs each job in a
small cluster inside its own JVM."""

import re
from collections.abc import Mapping

from racetrack.config import Settings
from racetrack.engines.flink import cluster
from racetrack.engines.flink.settings import FlinkSettings
from racetrack.stack import net
from racetrack.stack.service import Context, Launch

# Address of Flink's internal endpoints, which nothing outside the process uses.
WITHIN = "127.0.0.1"


class Flink:
    """See `racetrack.stack.service.NativeService`."""

    name = "flink"
    parts = ("flink",)
    after = ()
    ready_within_s = 60.0

    def ports(self, settings: Settings) -> Mapping[str, int]:
        return {"FLINK_PORT": FlinkSettings.of(settings).flink_port}

    def launch(self, context: Context) -> Launch:
        settings = FlinkSettings.of(context.settings)
        runs_jobs = not settings.flink_jobmanager
        return cluster.launch(
            context,
            cluster.GATEWAY,
            configured(context),
            heap=settings.flink_heap if runs_jobs else cluster.COORDINATION_HEAP,
            runs_jobs=runs_jobs,
        )

    def check(self, context: Context) -> None:
        """Check that the gateway answers."""
        net.get_json(f"{_url(context.settings)}/info")

    def versions(self, context: Context) -> Mapping[str, str]:
        """Return the versions of Flink and of its Kafka connector."""
        jars = " ".join(path.name for path in (context.parts["flink"] / "lib").glob("*.jar"))
        names = {"flink": "flink-dist", "flink-kafka": "flink-sql-connector-kafka"}
        matches = {part: re.search(rf"\b{jar}-(\S+)\.jar", jars) for part, jar in names.items()}
        return {part: match[1] for part, match in matches.items() if match}


def configured(context: Context) -> dict[str, str]:
    """Return the gateway's configuration where it differs from Flink's defaults."""
    settings = FlinkSettings.of(context.settings)
    return {
        "sql-gateway.endpoint.rest.address": net.host(settings),
        "sql-gateway.endpoint.rest.bind-address": settings.bind_address,
        "sql-gateway.endpoint.rest.port": str(settings.flink_port),
        # Sessions never expire. By default a session ends after ten idle minutes, and the classes
        # that its job needs are unloaded with it.
        "sql-gateway.session.idle-timeout": "0",
        **(_remote(settings) if settings.flink_jobmanager else _local()),
        **cluster.of_every_process(settings, context.work),
    }


def _local() -> dict[str, str]:
    return {
        "execution.target": "local",
        "rest.address": WITHIN,
        "rest.bind-address": WITHIN,
        "jobmanager.bind-host": WITHIN,
        "taskmanager.bind-host": WITHIN,
        "taskmanager.host": WITHIN,
    }


def _remote(settings: FlinkSettings) -> dict[str, str]:
    return {"execution.target": "remote", **cluster.of_a_cluster(settings)}


def _url(settings: Settings) -> str:
    return f"http://{net.endpoint(net.host(settings), FlinkSettings.of(settings).flink_port)}"


SERVICE = Flink()
