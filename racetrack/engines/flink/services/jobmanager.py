"""Service of Flink's JobManager in a cluster with TaskManagers of their own, as on Kubernetes."""

from collections.abc import Mapping

from racetrack.config import Settings
from racetrack.engines.flink import cluster
from racetrack.engines.flink.settings import FlinkSettings
from racetrack.stack import net
from racetrack.stack.service import Context, Launch

MAIN = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"


class JobManager:
    """See `racetrack.stack.service.NativeService`."""

    name = "jobmanager"
    parts = ("flink",)
    after = ()
    ready_within_s = 60.0

    def ports(self, settings: Settings) -> Mapping[str, int]:  # noqa: ARG002
        return {}

    def launch(self, context: Context) -> Launch:
        settings = FlinkSettings.of(context.settings)
        configuration = {
            **cluster.of_a_cluster(settings),
            **cluster.of_every_process(settings, context.work),
        }
        heap = cluster.COORDINATION_HEAP
        return cluster.launch(context, MAIN, configuration, heap=heap, runs_jobs=False)

    def check(self, context: Context) -> None:
        """Check that the JobManager answers."""
        host = FlinkSettings.of(context.settings).flink_jobmanager
        net.get_json(f"http://{net.endpoint(host, cluster.REST_PORT)}/overview")

    def versions(self, context: Context) -> Mapping[str, str]:  # noqa: ARG002
        return {}


SERVICE = JobManager()
