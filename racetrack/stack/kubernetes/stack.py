"""Kubernetes stack: services as pods of one namespace, which is removed with all of them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from signal import Signals
from typing import Any

from racetrack.config import Settings
from racetrack.errors import BusyError, RacetrackError, SetupError
from racetrack.stack import applicability
from racetrack.stack.containers import ContainerStack, called, shown
from racetrack.stack.contract import (
    DataFolder,
    InternalEndpoints,
    OnReady,
    Say,
    ServiceClock,
    ignore,
)
from racetrack.stack.kubernetes import agents, manifests, orphans, own_files, pods
from racetrack.stack.kubernetes.agents import Agent
from racetrack.stack.kubernetes.disruptions import Disruptions
from racetrack.stack.kubernetes.kubectl import Kubectl, is_in_a_pod
from racetrack.stack.kubernetes.manifests import ROLE, Workload
from racetrack.stack.kubernetes.pods import Pod
from racetrack.stack.kubernetes.startup import (
    Logs,
    wait_until_ending,
    wait_until_gone,
    wait_until_ready,
)

CORES = ("engine_cpus", "broker_cpus", "loadgen_cpus")
UNSET = "Leave it empty."
# Services that the user may provide and that are no engines.
NO_ENGINES = ("broker", "registry")


class KubernetesStack(ContainerStack):
    """Services as pods of the current cluster; see `racetrack.stack.contract.Stack`."""

    runtime = "kubernetes"
    helper_programs = ("kube", "containerd", "etcd", "coredns")
    lose_data = ("mysql", "redpanda", "redis", "debezium", "loadgen")

    def __init__(self, settings: Settings) -> None:
        """Connect to the cluster; start nothing.

        Raises:
            NoCluster: no cluster can be used.
        """
        super().__init__(settings, orphans.work_root(settings.stack_name))
        self._kubectl = Kubectl(settings.stack_name)
        self._version = self._kubectl.server_version()
        self._nodes = [each for each in self._kubectl.get("nodes") if _is_ready(each)]
        self._planned: list[DataFolder] = []
        self._started: _Started | None = None

    @property
    def agents(self) -> Sequence[Agent]:
        """Agents on the nodes of the stack's pods."""
        return self._started.agents if self._started else ()

    @property
    def internal_endpoints(self) -> InternalEndpoints:
        """Addresses for use inside pods. An engine that runs elsewhere gets addresses of a node."""
        inside, outside = super().internal_endpoints, self.endpoints
        if all(each.service in NO_ENGINES for each in self._provided.used):
            return inside
        return replace(inside, kafka=outside.kafka, registry=outside.registry, redis=outside.redis)

    def missing(self, services: Sequence[str]) -> list[str]:
        """Return the services that have no manifest."""
        return manifests.missing(services)

    def clear(self) -> str | None:
        cleared = orphans.clear_at_once(self.settings.stack_name)
        own = f"--field-selector=metadata.name={self._kubectl.namespace}"
        if self._kubectl.get("namespaces", own):
            raise BusyError(
                f"The namespace {self._kubectl.namespace} was not created by Racetrack. Remove it"
                f" (`kubectl delete namespace {self._kubectl.namespace}`), or set another"
                " STACK_NAME."
            )
        return cleared

    def obtain(self, units: Sequence[str], say: Say) -> None:  # noqa: ARG002
        """Check that there is a node for each role, and that no setting assigns cores."""
        own_files.contents(self.settings)  # raises an error if one can't be read
        for name in CORES:
            if getattr(self.settings, name):
                applicability.require_applicable(name, self.runtime, airgap=False, remedy=UNSET)
        wanted = manifests.of_services(self._kubectl, self.settings, units)
        for each in wanted:
            for label in manifests.roles(each):
                self._node_with(label)
        self._planned = [
            agents.data_folder(pod, point, size, size)
            for each in wanted
            if each["metadata"]["labels"].get(manifests.SERVICE) == called("broker")
            for workload in manifests.workloads([each])
            for pod in workload.pods
            for point, size in manifests.volumes_in_memory(each).items()
        ]

    def spawn(self, units: Sequence[str], say: Say, on_ready: OnReady) -> None:
        objects = manifests.of_services(self._kubectl, self.settings, [*units, agents.NAME])
        self._started = _Started(
            Logs(self._kubectl, self._logs, self.shown), manifests.workloads(objects)
        )
        self._create(objects)
        self._await(self._started.workloads, say, on_ready)
        self._connect_agents()

    def pids(self, services: Sequence[str]) -> dict[str, list[int]]:  # noqa: ARG002
        """Return nothing: the agents measure the pods, which may run on other machines."""
        return {}

    def accounting(self, service: str) -> None:  # noqa: ARG002
        """Return None: the agents measure the pods."""
        return

    def folders_in_memory(self, service: str) -> list[Path]:  # noqa: ARG002
        """Return an empty list: the agents measure the pods' in-memory volumes."""
        return []

    def data_folders(self) -> list[DataFolder]:
        """Return the pods' in-memory volumes; before the start, only those planned for the
        broker."""
        if not self._started:
            return self._planned
        return [folder for agent in self.agents for folder in agent.folders()]

    def program(self, service: str, name: str) -> str:
        """Return a `kubectl exec` command that runs the program in the service's first pod."""
        return f"kubectl -n {self._kubectl.namespace} exec {called(service)}-0 -- {name}"

    def where_logs(self) -> str:
        """Return a `kubectl logs` command: a stack left running writes no log files."""
        return f"kubectl -n {self._kubectl.namespace} logs --prefix -l {manifests.SERVICE}"

    def died(self) -> Mapping[str, str]:
        on_node = {agent.node: agent for agent in self.agents}
        return {
            self.shown(pod.service): self._up.logs.with_log(f"the process of {pod.name} ended", pod)
            for pod in list(self._up.pods.values())
            if pod.node in on_node and on_node[pod.node].has_ended(pod.container_id)
        }

    def kill_units(self, units: Sequence[str]) -> None:
        """Send SIGKILL to all processes of the units' pods, and return when the pods are gone.

        The pods are deleted too, because Kubernetes would restart their containers at once. Their
        processes are stopped before, so that SIGTERM, which a deletion sends first, has no effect.
        """
        doomed = self._workloads(units)
        names = [name for each in doomed for name in each.pods]
        running = self._uids(units)
        self._signal("STOP", running)
        for each in doomed:
            self._kubectl.run("scale", "statefulset", each.name, "--replicas=0")
        wait_until_ending(self._kubectl, names)
        self._forget(names)
        self._signal("KILL", running)
        wait_until_gone(self._kubectl, names)

    def signal(self, unit: str, number: Signals) -> None:
        self._signal(number.name.removeprefix("SIG"), self._uids([unit]))

    def respawn(self, unit: str) -> None:
        workloads = self._workloads([unit])
        for each in workloads:
            self._kubectl.run("scale", "statefulset", each.name, f"--replicas={each.replicas}")
        self._await(workloads, lambda _: None)

    @property
    def cluster(self) -> Disruptions:
        """The cluster, for faults that hit its pods and nodes."""
        return Disruptions(self.settings, self._kubectl, self._nodes, self._revive, self._forget)

    def _revive(self, workloads: Sequence[Workload]) -> None:
        self._await(workloads, lambda _: None)

    def _forget(self, names: Collection[str]) -> None:
        """Forget pods that are about to end, so that `died` does not report them."""
        for name in names:
            self._up.pods.pop(name, None)

    def _workloads(self, units: Sequence[str]) -> list[Workload]:
        return [each for each in self._up.workloads if each.service in units]

    def versions(self) -> Mapping[str, str]:
        found = self._up.pods.values()
        images = {pod.service: pod.image for pod in found}
        nodes = {f"node of {pod.name}": pod.node for pod in found}
        return {"kubernetes": self._version, **images, **nodes}

    def alive(self) -> Mapping[str, Sequence[int]]:
        ready = {pod.service for pod in pods.read(self._kubectl) if pod.is_ready}
        self._adopt_addresses()
        return {name: [] for name in ready if name != agents.NAME}

    def end(self) -> str | None:
        for agent in self.agents:
            agent.close()
        orphans.uncordon(self._kubectl)
        was_there = orphans.remove_namespace(self._kubectl)
        if self._started:
            self._started.logs.close()
        return f"removed the namespace {self._kubectl.namespace}" if was_there else None

    def shown(self, unit: str) -> str:
        is_elsewhere = unit == called("broker") and self.settings.kafka_bootstrap_servers
        return "registry" if is_elsewhere else shown(unit)

    @property
    def _up(self) -> "_Started":
        if self._started is None:
            raise RacetrackError("This stack has not been started.")
        return self._started

    def _await(self, workloads: Sequence[Workload], say: Say, on_ready: OnReady = ignore) -> None:
        """Wait until all pods of these workloads are ready; remember these pods."""
        for pod in wait_until_ready(self._kubectl, self._up.logs, workloads, say, on_ready):
            self._up.pods[pod.name] = pod

    def _connect_agents(self) -> None:
        """Connect to the agents, and compare the clocks of the brokers and the generators.

        Raises:
            ClusterFailed: the agent on a node can't be reached.
        """
        up = self._up
        nodes: dict[str, set[str]] = {}
        for pod in up.pods.values():
            nodes.setdefault(pod.service, set()).add(pod.node)
        with_role = {_name(node) for node in self._nodes if _has_role(node)}
        found = agents.wait_until_there(self._kubectl, with_role)
        up.agent_pods = {pod.node: pod.name for pod in found}
        (service,) = self._kubectl.get("services", f"--selector={manifests.SERVICE}={agents.NAME}")
        port = int(service["spec"]["ports"][0]["nodePort"])
        addresses = {_name(node): (_address(node), port) for node in self._nodes}
        if is_in_a_pod():  # from inside a pod, a node's port may lead to any node's agent
            addresses |= {pod.node: (pod.ip, agents.PORT) for pod in found}
        service_of = agents.by_prefix({name: self.shown(name) for name in nodes})
        up.agents = [Agent(pod.node, addresses[pod.node], service_of) for pod in found]
        clocks = {agent.node: agents.first_clock(agent) for agent in up.agents}
        for name, title in {"broker": "the broker", "loadgen": "the load generator"}.items():
            # Otherwise the user provides it.
            if self.shown(called(name)) == name and called(name) in nodes:
                of_nodes = [clocks[node] for node in sorted(nodes[called(name)])]
                self._provided.clocks[name] = ServiceClock.covering(title, of_nodes)

    def _uids(self, units: Sequence[str]) -> dict[str, list[str]]:
        """Return the uids of the units' pods, by node."""
        names = [self.shown(unit) for unit in units]
        return {
            agent.node: [uid for name in names for uid in agent.uids(name)] for agent in self.agents
        }

    def _signal(self, name: str, uids: Mapping[str, Sequence[str]]) -> None:
        """Let the agents send a signal to all processes of these pods; `uids` maps each node to the
        uids of its pods."""
        for node, of in uids.items():
            if of:
                program = ("python", "/agent/agent.py", name)
                self._kubectl.run("exec", self._up.agent_pods[node], "--", *program, *of)

    def _create(self, objects: Sequence[manifests.Object]) -> None:
        """Create the namespace and the Services, then the settings with the Services' ports, then
        the rest."""
        services = [each for each in objects if each["kind"] == "Service"]
        self._kubectl.apply([manifests.namespace(self._kubectl.namespace)])
        self._kubectl.apply(services)
        created = self._adopt_addresses()
        address = self.settings.bind_address
        outside = [f"{address}:{port}" for port in manifests.outside_ports(created)]
        self._kubectl.apply(manifests.configuration(self.settings, ",".join(outside)))
        self._kubectl.apply([each for each in objects if each not in services])

    def _adopt_addresses(self) -> list[dict[str, Any]]:
        """Change the settings to the addresses and ports that the cluster assigned; return the
        Services."""
        created = self._kubectl.get("services")
        ports = manifests.node_ports(created)
        node = self._node_with(f"{ROLE}generator")
        self.settings = self.settings.model_copy(
            update={**ports, "bind_address": _address(node), "kafka_advertised_address": ""}
        )
        return created

    def _node_with(self, label: str) -> Mapping[str, Any]:
        for node in self._nodes:
            if label in node["metadata"]["labels"]:
                return node
        raise SetupError(
            f"No ready node has the label {label}. Choose one:"
            f" `kubectl label node NAME {label}=` (nodes: {', '.join(map(_name, self._nodes))})."
        )


@dataclass
class _Started:
    """A started stack: its pods by name, and the agents' pods by node."""

    logs: Logs
    workloads: list[Workload]
    pods: dict[str, Pod] = field(default_factory=dict)
    agents: list[Agent] = field(default_factory=list)
    agent_pods: dict[str, str] = field(default_factory=dict)


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = {each["type"]: each["status"] for each in node["status"]["conditions"]}
    return conditions.get("Ready") == "True" and not node["spec"].get("unschedulable", False)


def _name(node: Mapping[str, Any]) -> str:
    return str(node["metadata"]["name"])


def _has_role(node: Mapping[str, Any]) -> bool:
    return any(label.startswith(ROLE) for label in node["metadata"]["labels"])


def _address(node: Mapping[str, Any]) -> str:
    addresses = {each["type"]: each["address"] for each in node["status"]["addresses"]}
    return str(addresses["InternalIP"])
