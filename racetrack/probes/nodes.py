"""Samples of services on other machines, taken by the agents on their nodes."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress

from racetrack.clock import now_ms
from racetrack.errors import RacetrackError
from racetrack.probes import noise
from racetrack.probes.usage import COLUMNS, EVERY_S, Meter, Usage, UsageProbe
from racetrack.results.folder import RunFolder
from racetrack.stack.contract import NodeAgent, NodeSample, PodUsage, ServiceClock
from racetrack.units import BYTES_PER_GIB

CLOCKS_EVERY_S = 10.0
# A run fails if a node can't be reached for this long. The agent on the node keeps its samples for
# longer.
LOST_S = 120.0
FILES = {
    "cgroup.csv": "at_ms,service,cpu_s,memory_gib,pod",
    "throttling.csv": "at_ms,service,periods,throttled,throttled_s,pod",
    "noise_nodes.csv": ",".join(("at_ms", "node", "machine", *noise.COLUMNS[1:])),
    "clocks.csv": "at_ms,node,offset_ms,uncertainty_ms",
}


class NodesUsage:
    """Resources that the services' pods have used, also those of pods that are gone."""

    def __init__(self) -> None:
        self._pods: dict[str, PodUsage] = {}
        self._there: dict[str, set[str]] = {}  # uids of the pods that exist, by node

    def take(self, node: str, sample: NodeSample) -> None:
        """Add a sample of a node."""
        self._there[node] = {pod.uid for pod in sample.pods}
        self._pods |= {pod.uid: pod for pod in sample.pods}

    def by_service(self) -> dict[str, Usage]:
        """Return the usage of each service, summed over its pods."""
        there = set[str]().union(*self._there.values())
        services: dict[str, Usage] = {}
        for uid, pod in self._pods.items():
            sum_ = services.get(pod.service, Usage(0.0, 0.0, 0.0))
            rss_gib = pod.rss_bytes / BYTES_PER_GIB if uid in there else 0.0
            system_s = pod.cpu_s - pod.cpu_user_s
            services[pod.service] = Usage(
                sum_.user_s + pod.cpu_user_s, sum_.system_s + system_s, sum_.rss_gib + rss_gib
            )
        return services


def usage_now(agents: Callable[[], Sequence[NodeAgent]]) -> Callable[[], Mapping[str, Usage]]:
    """Return a function that samples all nodes at once, for use in a `Meter`. For a node that can't
    be reached, it uses the last sample."""
    usage = NodesUsage()

    def read() -> Mapping[str, Usage]:
        for agent in agents():
            with suppress(OSError):
                usage.take(agent.node, agent.sample())
        return usage.by_service()

    return read


class NodesProbe(UsageProbe):
    """Writes the samples that the agents take once a second, with times by this machine's clock:

    - `usage.csv` and `cgroup.csv` as elsewhere, but with a row per pod, named in the column `pod`;
    - `throttling.csv`, `at_ms,service,periods,throttled,throttled_s,pod`: counts since the pod was
      created;
    - `noise_nodes.csv`: `at_ms,node,machine`, then the columns of `noise.csv`. `machine` is empty
      if the node runs on this machine;
    - `clocks.csv`, `at_ms,node,offset_ms,uncertainty_ms`: how far each node's clock is ahead.

    A connection that is lost for less than LOST_S costs no sample: agents keep them.
    """

    name = "The samples of the nodes"
    columns = f"{COLUMNS},pod"

    def __init__(self, agents: Sequence[NodeAgent], meter: Meter, folder: RunFolder) -> None:
        super().__init__(meter, EVERY_S, folder)
        self._agents, self._here = agents, meter
        self._files = {name: folder.open_for_lines(name) for name in FILES}
        self._usage = NodesUsage()
        self._last = {agent.node: 0 for agent in agents}  # number of the newest sample
        self._reached_s = {agent.node: time.monotonic() for agent in agents}
        self._clocks: dict[str, ServiceClock] = {}
        self._compared_s = -CLOCKS_EVERY_S

    def run(self) -> None:
        """Write samples as they arrive."""
        with ExitStack() as closing:
            for name, columns in FILES.items():
                closing.enter_context(self._files[name]).write(columns + "\n")
            super().run()

    def _write_rest(self) -> None:
        with suppress(RacetrackError):  # if a node is lost, `_write` has already raised it
            self._read_nodes()

    def _write(self) -> None:
        at_ms, here = now_ms(), self._here.read_here()
        for service, used in here.items():
            seconds = f"{used.cpu_s:.2f},{used.user_s:.2f}"
            self._csv.write(f"{at_ms},{service},{seconds},{used.rss_gib:.6f},\n")
        self._read_nodes()
        self.newest = at_ms, {**here, **self._usage.by_service()}

    def _read_nodes(self) -> None:
        if time.monotonic() - self._compared_s >= CLOCKS_EVERY_S:
            self._compare_clocks()
        for agent in self._agents:
            try:
                samples = agent.after(self._last[agent.node])
            except OSError as error:
                if time.monotonic() - self._reached_s[agent.node] > LOST_S:
                    raise RacetrackError(
                        f"the node {agent.node} could not be reached for {LOST_S:.0f} s: {error}"
                    ) from error
                continue
            self._reached_s[agent.node] = time.monotonic()
            for sample in samples if agent.node in self._clocks else ():
                self._take(agent.node, sample)

    def _compare_clocks(self) -> None:
        self._compared_s = time.monotonic()
        for agent in self._agents:
            with suppress(OSError):
                self._clocks[agent.node] = clock = agent.clock()
                numbers = f"{clock.offset_ms:.3f},{clock.uncertainty_ms:.3f}"
                self._files["clocks.csv"].write(f"{now_ms()},{agent.node},{numbers}\n")

    def _take(self, node: str, sample: NodeSample) -> None:
        self._last[node] = sample.number
        self._usage.take(node, sample)
        at_ms = round(sample.at_ms - self._clocks[node].offset_ms)
        for pod in sample.pods:
            begin = f"{at_ms},{pod.service}"
            rss_gib, memory_gib = pod.rss_bytes / BYTES_PER_GIB, pod.memory_bytes / BYTES_PER_GIB
            self._csv.write(
                f"{begin},{pod.cpu_s:.3f},{pod.cpu_user_s:.3f},{rss_gib:.6f},{pod.pod}\n"
            )
            self._files["cgroup.csv"].write(f"{begin},{pod.cpu_s:.3f},{memory_gib:.6f},{pod.pod}\n")
            self._files["throttling.csv"].write(
                f"{begin},{pod.periods},{pod.throttled},{pod.throttled_s:.3f},{pod.pod}\n"
            )
        if sample.pods:  # the noise of nodes without services does not matter
            self._files["noise_nodes.csv"].write(_noise_row(at_ms, node, sample))


def _noise_row(at_ms: int, node: str, sample: NodeSample) -> str:
    """Return a row of `noise_nodes.csv`. Kubernetes' own programs count as services, except on the
    harness's machine, where `noise.csv` has them."""
    numbers = dict(sample.noise)
    helpers_s = numbers.pop("helpers_s") or 0.0
    numbers["services_s"] = (numbers["services_s"] or 0.0) + (helpers_s if sample.machine else 0.0)
    texts = (numbers.get(name) for name in noise.COLUMNS[1:])
    fields = ("" if number is None else f"{number:.3f}" for number in texts)
    return ",".join((str(at_ms), node, sample.machine, *fields)) + "\n"
