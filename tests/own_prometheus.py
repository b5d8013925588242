"""A real Prometheus for tests, from Debian's package, unpacked. It samples this process."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from racetrack.install import apt, debian
from racetrack.install.ensure import ensure_recipes
from racetrack.install.recipe import Recipe, Site
from racetrack.probes.usage import BYTES_PER_GIB, usage_of
from racetrack.stack import net
from tests.e2e.loadgen_stack import free_ports
from tests.servers import running

PROGRAM = "usr/bin/prometheus"
CPU, MEMORY = "tried_cpu_seconds_total", "tried_memory_bytes"
CONFIGURATION = """
global: {{scrape_interval: 1s}}
scrape_configs: [{{job_name: tried, static_configs: [{{targets: ["127.0.0.1:{port}"]}}]}}]
"""


class Figures(Collector):
    """CPU time and memory of a process, or values that a test sets."""

    def __init__(self, pid: int = 0) -> None:
        self.pid, self.cpu_s, self.memory_bytes = pid, 12.5, 3.0 * BYTES_PER_GIB

    def collect(self) -> Iterator[Metric]:
        """Yield the two figures."""
        if self.pid:
            used = usage_of([self.pid])
            self.cpu_s, self.memory_bytes = used.cpu_s, used.rss_gib * BYTES_PER_GIB
        cpu = CounterMetricFamily(CPU, "CPU time")
        cpu.add_metric([], self.cpu_s)
        yield cpu
        yield GaugeMetricFamily(MEMORY, "memory", self.memory_bytes)


@dataclass(frozen=True)
class OwnPrometheus:
    """A running Prometheus."""

    port: int

    @property
    def url(self) -> str:
        """The server's URL."""
        return f"http://127.0.0.1:{self.port}"

    def has(self, query: str) -> bool:
        """Return whether a query returns a value."""
        _, answer = net.request(f"{self.url}/api/v1/query?query={query}")
        return b'"value"' in answer


@contextmanager
def own_prometheus(folder: Path, figures: Figures) -> Iterator[OwnPrometheus]:
    """Start Prometheus; stop it at the end."""
    (part,) = ensure_recipes([_recipe()], print).values()
    port, figures_port = free_ports(2)
    registry = CollectorRegistry()
    registry.register(figures)
    server, _ = start_http_server(figures_port, "127.0.0.1", registry)
    (folder / "prometheus.yml").write_text(CONFIGURATION.format(port=figures_port))
    command = [
        str(part / PROGRAM),
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    found = OwnPrometheus(port)
    try:
        with running([command], folder, lambda: found.has(CPU)):
            yield found
    finally:
        server.shutdown()


def _recipe() -> Recipe:
    _, suite = apt.host()
    packages = apt.Packages("prometheus", suite, ("prometheus",), re.compile("^prometheus$"))
    return debian.unpacked(packages, "Prometheus, for tests (unpacked)", 23, _version)


def _version(site: Site) -> str:
    program = site.folder / PROGRAM
    return apt.installed_version(site, "prometheus", program, "--version", pattern=r"version (\S+)")
