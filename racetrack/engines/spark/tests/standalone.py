"""A real standalone cluster of Spark, started by the tests: a master and a worker."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from racetrack import install
from racetrack.engines.spark.services import sparkmaster
from racetrack.engines.spark.services.spark import NOT_IN_SPARK
from racetrack.stack import jvm, net
from tests.ports import free_ports
from tests.servers import running

DEPLOY = "org.apache.spark.deploy"
HOST = "127.0.0.1"
READY_WITHIN_S = 150.0


@dataclass(frozen=True)
class Standalone:
    """A running cluster."""

    port: int
    page_port: int
    folder: Path

    @property
    def shared(self) -> Path:
        return self.folder / "shared"

    @property
    def environment(self) -> dict[str, str]:
        """Settings of a run that uses this cluster, as environment variables."""
        return {
            "SPARK_MASTER_URL": f"spark://{HOST}:{self.port}",
            "SPARK_SHARED_FOLDER": str(self.shared),
        }

    def applications(self) -> list[str]:
        """Return the names of the running applications."""
        return [each["name"] for each in self.state()["activeapps"]]

    def state(self) -> dict[str, Any]:
        """Return the state that the master reports.

        Raises:
            NotReady: the master does not answer.
        """
        return cast(dict[str, Any], net.get_json(f"http://{HOST}:{self.page_port}/json/"))


@contextmanager
def running_standalone(folder: Path) -> Iterator[Standalone]:
    """Start the cluster; stop it and its executors at the end."""
    part = install.ensure(["spark"], install.read_versions(), print)["spark"]
    port, page, worker_page = free_ports(3)
    cluster = Standalone(port, page, folder)
    cluster.shared.mkdir()
    jars = folder / "spark" / "jars"
    jars.mkdir(parents=True)
    for jar in (part / "lib").iterdir():
        if not jar.name.startswith(NOT_IN_SPARK):
            (jars / jar.name).symlink_to(jar)
    address = ["--host", HOST]
    commands = {
        "master.Master": [*address, "--port", str(port), "--webui-port", str(page)],
        "worker.Worker": [
            *[*address, "--webui-port", str(worker_page), "--work-dir", str(folder / "work")],
            *["--cores", "2", "--memory", "2g", f"spark://{HOST}:{port}"],
        ],
    }
    java = [str(jvm.java()), "-Xmx256m", *sparkmaster.java_options(part), "-cp", f"{jars}/*"]
    environment = {**os.environ, "SPARK_HOME": str(jars.parent), "SPARK_SCALA_VERSION": "2.13"}

    def is_ready() -> bool:
        return [each["state"] for each in cluster.state()["workers"]] == ["ALIVE"]

    with running(
        [[*java, f"{DEPLOY}.{name}", *arguments] for name, arguments in commands.items()],
        folder,
        is_ready,
        READY_WITHIN_S,
        environment,
    ):
        yield cluster
