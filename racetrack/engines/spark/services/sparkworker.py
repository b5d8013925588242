"""Service of a worker of a standalone cluster on Kubernetes. It starts one executor, which runs
tasks for the program."""

from collections.abc import Mapping

from racetrack.config import Settings
from racetrack.engines.spark.services import sparkmaster
from racetrack.engines.spark.settings import SparkSettings
from racetrack.stack.service import Context, Launch, NotReady


class Worker:
    """See `racetrack.stack.service.NativeService`."""

    name = "sparkworker"
    parts = ("spark",)
    after = ()
    ready_within_s = 120.0

    def ports(self, settings: Settings) -> Mapping[str, int]:  # noqa: ARG002
        return {}

    def launch(self, context: Context) -> Launch:
        settings = SparkSettings.of(context.settings)
        options = ["--work-dir", str(context.work / "work"), "--memory", settings.spark_heap]
        if settings.spark_cores:
            options += ["--cores", str(settings.spark_cores)]
        return sparkmaster.launch(
            context,
            "worker.Worker",
            *options,
            f"spark://{settings.peer_spark_master}:{sparkmaster.MASTER_PORT}",
        )

    def check(self, context: Context) -> None:
        """Check that this worker has registered with the master."""
        known = sparkmaster.workers(SparkSettings.of(context.settings))
        if sparkmaster.own_address() not in [worker["host"] for worker in known]:
            raise NotReady("the master does not know it")

    def versions(self, context: Context) -> Mapping[str, str]:  # noqa: ARG002
        return {}


SERVICE = Worker()
