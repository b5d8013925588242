"""Kubernetes stack: services as pods of one namespace, which is removed with all of them."""

import contextlib
import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from racetrack.config import Settings
from racetrack.errors import BusyError, RacetrackError, SetupError
from racetrack.stack import applicability, resources
from racetrack.stack.containers import ContainerStack, Live, called, each_once, shown
from racetrack.stack.contract import (
    Accounting,
    DataFolder,
    OnReady,
    RunningStack,
    Say,
    Unmeasurable,
    ignore,
)
from racetrack.stack.kubernetes import manifests, orphans, pods
from racetrack.stack.kubernetes.disruptions import Disruptions
from racetrack.stack.kubernetes.kubectl import Kubectl
from racetrack.stack.kubernetes.manifests import ROLE, Workload
from racetrack.stack.kubernetes.pods import Pod
from racetrack.stack.kubernetes.startup import (
    Logs,
    wait_until_ending,
    wait_until_gone,
    wait_until_ready,
)
from racetrack.stack.lifetime import UpFile, Watchdog, require_not_running
from racetrack.stack.provided import Provided

CORES = ("engine_cpus", "broker_cpus", "loadgen_cpus")
UNSET = "Leave it empty."
REMEDY = "Enlarge it (sizeLimit in the service's manifest)"
# Services that lose their data with their pods.
LOSE_DATA = ("mysql", "redpanda", "redis", "debezium", "loadgen")


class KubernetesStack(ContainerStack):
    """Services as pods of the current cluster; see `racetrack.stack.contract.Stack`."""

    runtime = "kubernetes"
    helper_programs = ("kube", "containerd", "etcd", "coredns")

    def __init__(self, settings: Settings) -> None:
        """Connect to the cluster; start nothing.

        Raises:
            NoCluster: no cluster can be used.
        """
        self.settings = settings
        self._kubectl = Kubectl(settings.stack_name)
        self._version = self._kubectl.server_version()
        self._nodes = [each for each in self._kubectl.get("nodes") if _is_ready(each)]
        self._root = orphans.work_root(settings.stack_name)
        self._note = UpFile(self._root)
        self._watchdog = Watchdog(self.runtime, settings.stack_name)
        self._provided = Provided(settings)
        self._started: _Started | None = None

    @property
    def unmeasurable(self) -> Unmeasurable | None:
        """Reason why processes of pods can't be seen here: their nodes are other machines."""
        away = [_name(node) for node in self._nodes if _roles(node) and not pods.is_here(node)]
        if not away:
            return None
        return Unmeasurable(
            f"Pods run on other machines ({', '.join(away)}), so their processes can't be seen",
            "Use a cluster whose nodes run on this machine",
        )

    def missing(self, services: Sequence[str]) -> list[str]:
        """Return the services that have no manifest."""
        return manifests.missing(services)

    def prepare(self, services: Sequence[str], say: Say) -> None:
        """Remove what a killed run left behind; check that there is a node for each role.

        Raises:
            UsageError: a setting assigns cores.
            SetupError: no ready node has a role that a service needs.
            BusyError: a stack of this name was left running, or the namespace is not the harness's.
        """
        for name in CORES:
            if getattr(self.settings, name):
                applicability.require_applicable(name, self.runtime, airgap=False, remedy=UNSET)
        self._watchdog.wait_for_last(say)
        require_not_running(self.running())
        self._clear_orphans(say)
        started = self._provided.check(services, say)
        wanted = manifests.of_services(self._kubectl, self.settings, each_once(started))
        for each in wanted:
            for label in manifests.roles(each):
                self._node_with(label)

    def start(
        self, services: Sequence[str], logs: Path | None, say: Say, on_ready: OnReady = ignore
    ) -> None:
        """Start the services; return when all are ready. See the contract.

        Raises:
            ServiceError: a service did not start; the message ends with the last lines of its log.
        """
        wanted = each_once(services)
        self._watchdog.begin(logs.parent if logs else None, say, self._provided.environment())
        self._root.mkdir(mode=0o700, exist_ok=True)
        logs = logs or self._root / "logs"
        logs.mkdir(exist_ok=True)
        objects = manifests.of_services(self._kubectl, self.settings, wanted)
        self._started = _Started(Logs(self._kubectl, logs), manifests.workloads(objects))
        self._create(objects)
        self._await(self._started.workloads, say, _both(services, on_ready))

    def pids(self, services: Sequence[str]) -> dict[str, list[int]]:
        """Return the live processes of each service's pods; see the contract."""
        return {
            name: [pid for each in self._live(name) for pid in each.pids()] for name in services
        }

    def accounting(self, service: str) -> Accounting | None:
        """Return the control groups of the service's pods, if they can be seen here."""
        groups = [each.group for each in self._live(service)]
        return pods.Sum(groups) if groups else None

    def folders_in_memory(self, service: str) -> list[Path]:
        """Return the tmpfs mounts of the service's containers."""
        mains = [each.main.pid for each in self._live(service) if each.runs()]
        return [folder for pid in mains for folder in resources.tmpfs_of(pid)]

    def data_folders(self) -> list[DataFolder]:
        """Return the tmpfs mounts of all live containers that can be seen here."""
        found = list(self._started.pods.values()) if self._started else []
        services = {pod.service for pod in found}
        return [
            DataFolder(folder, f"{folder} of {shown(name)}", REMEDY)
            for name in sorted(services)
            for folder in self.folders_in_memory(name)
        ]

    def log_of(self, service: str) -> Path:
        """Return the file that receives the output of the service's first pod."""
        return self._up.logs.file(called(service))

    def program(self, service: str, name: str) -> str:
        """Return a `kubectl exec` command that runs the program in the service's first pod."""
        return f"kubectl -n {self._kubectl.namespace} exec {called(service)}-0 -- {name}"

    def where_logs(self) -> str:
        """Return a `kubectl logs` command: a stack left running writes no log files."""
        return f"kubectl -n {self._kubectl.namespace} logs --prefix -l {manifests.SERVICE}"

    def died(self) -> Mapping[str, str]:
        """Return the services of which a pod's main process ended, with the end of its log."""
        return {
            shown(pod.service): f"the process of {pod.name} ended; the end of its log:\n"
            f"{self._up.logs.tail(pod)}"
            for pod in list(self._up.pods.values())
            if (live := self._up.live.get(pod.name)) and not live.runs()
        }

    def survives_kill(self, service: str) -> bool:
        """Return False if the service's data is lost with its pod."""
        return called(service) not in LOSE_DATA

    def kill(self, services: Sequence[str]) -> None:
        """Send SIGKILL to all processes of the services' pods, and return when the pods are gone.

        The pods are deleted too, because Kubernetes would restart their containers at once. Their
        processes are stopped before, so that SIGTERM, which a deletion sends first, has no effect.

        Raises:
            RacetrackError: a service would lose its data.
        """
        if lost := [name for name in services if not self.survives_kill(name)]:
            raise RacetrackError(f"{lost[0]} can't be killed in a pod: its data would be lost.")
        doomed = self._workloads(services)
        names = [name for each in doomed for name in each.pods]
        for service in services:
            self.pause(service)
        for each in doomed:
            self._kubectl.run("scale", "statefulset", each.name, "--replicas=0")
        wait_until_ending(self._kubectl, names)
        running = [process for name in services for process in self._processes(name)]
        self._forget(names)
        for process in running:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        wait_until_gone(self._kubectl, names)

    def pause(self, service: str) -> None:
        """Stop all processes of the service's pods; their connections stay open."""
        for process in self._processes(service):
            process.suspend()

    def resume(self, service: str) -> None:
        """Continue a paused service."""
        for process in self._processes(service):
            process.resume()

    def restart(self, service: str) -> None:
        """Create the pods of a killed service; return when all are ready.

        Raises:
            ServiceError: a pod did not start; the message ends with the last lines of its log.
        """
        workloads = self._workloads([service])
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
        """Forget pods that are about to end, so that their end is not unexpected."""
        for name in names:
            self._up.pods.pop(name, None)
            self._up.live.pop(name, None)

    def _workloads(self, services: Sequence[str]) -> list[Workload]:
        names = [called(service) for service in services]
        return [each for each in self._up.workloads if each.service in names]

    def versions(self) -> Mapping[str, str]:
        """Return the cluster's version, each service's image, and each pod's node."""
        found = self._up.pods.values()
        images = {pod.service: pod.image for pod in found}
        nodes = {f"node of {pod.name}": pod.node for pod in found}
        return {"kubernetes": self._version, **images, **nodes}

    def stop(self, say: Say) -> None:
        """Remove the namespace with everything in it, whatever started it. Idempotent."""
        self._watchdog.wait_for_last(say)
        began, left_by = time.monotonic(), self._note.run_name()
        if self._started:
            self._started.live.clear()
        orphans.uncordon(self._kubectl)
        was_there = orphans.remove_namespace(self._kubectl)
        if self._started:
            self._started.logs.close()
        if self._root.exists():
            shutil.rmtree(self._root)
        self._provided.remove(say, left_by)
        self._watchdog.dismiss()
        if was_there:
            took_s = time.monotonic() - began
            say(f"  removed the namespace {self._kubectl.namespace} in {took_s:.1f} s")

    def leave_running(self, engine: str) -> None:
        """Leave the stack running when this command ends."""
        services = sorted({shown(pod.service) for pod in self._up.pods.values()})
        self._note.write(self.runtime, engine, self.settings.workload, services)
        self._watchdog.dismiss()

    def running(self) -> RunningStack | None:
        """Return the stack that `leave_running` left running, if any of it is alive."""
        if self._note.runtime() is None:
            return None
        found = [pod for pod in pods.read(self._kubectl) if pod.is_ready]
        self._adopt_addresses()
        services: dict[str, list[int]] = {}
        for pod in found:
            seen = [] if self.unmeasurable else pods.live(pod.container_id).pids()
            services.setdefault(shown(pod.service), []).extend(seen)
        return self._note.read(services)

    @property
    def _up(self) -> "_Started":
        if self._started is None:
            raise RacetrackError("This stack has not been started.")
        return self._started

    def _live(self, service: str) -> list[Live]:
        name, live = called(service), self._up.live
        found = [pod.name for pod in list(self._up.pods.values()) if pod.service == name]
        return [live[pod] for pod in found if pod in live]

    def _await(self, workloads: Sequence[Workload], say: Say, on_ready: OnReady = ignore) -> None:
        """Wait until all pods of these workloads are ready, and know them from then on."""
        for pod in wait_until_ready(self._kubectl, self._up.logs, workloads, say, on_ready):
            if not self.unmeasurable:
                self._up.live[pod.name] = pods.live(pod.container_id)
            self._up.pods[pod.name] = pod

    def _processes(self, service: str) -> list[psutil.Process]:
        return [psutil.Process(pid) for pid in self.pids([service])[service]]

    def _clear_orphans(self, say: Say) -> None:
        if orphans.clear_at_once(self.settings.stack_name):
            say("Cleared what a killed run left.")
        own = f"--field-selector=metadata.name={self._kubectl.namespace}"
        if self._kubectl.get("namespaces", own):
            raise BusyError(
                f"The namespace {self._kubectl.namespace} was not created by Racetrack. Remove it"
                f" (`kubectl delete namespace {self._kubectl.namespace}`), or set another"
                " STACK_NAME."
            )

    def _create(self, objects: Sequence[manifests.Object]) -> None:
        """Create the namespace, the Services, and with their ports the settings, then the rest."""
        services = [each for each in objects if each["kind"] == "Service"]
        self._kubectl.apply([manifests.namespace(self._kubectl.namespace)])
        self._kubectl.apply(services)
        self._adopt_addresses()
        self._kubectl.apply(manifests.configuration(self.settings, str(self.endpoints.kafka)))
        self._kubectl.apply([each for each in objects if each not in services])

    def _adopt_addresses(self) -> None:
        """Make the settings lead to the services, through the ports that the cluster assigned."""
        ports = manifests.node_ports(self._kubectl.get("services"))
        node = self._node_with(f"{ROLE}generator")
        self.settings = self.settings.model_copy(
            update={**ports, "bind_address": _address(node), "kafka_advertised_address": ""}
        )

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
    """What is known of a started stack: its pods, and their processes if they can be seen here,
    both by the pods' names."""

    logs: Logs
    workloads: list[Workload]
    pods: dict[str, Pod] = field(default_factory=dict)
    live: dict[str, Live] = field(default_factory=dict)


def _both(services: Sequence[str], on_ready: OnReady) -> Callable[[str], None]:
    """Return a function that also reports the other services of a pod, such as the registry."""

    def report(service: str) -> None:
        for name in services:
            if called(name) == called(service):
                on_ready(name)

    return report


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = {each["type"]: each["status"] for each in node["status"]["conditions"]}
    return conditions.get("Ready") == "True" and not node["spec"].get("unschedulable", False)


def _name(node: Mapping[str, Any]) -> str:
    return str(node["metadata"]["name"])


def _roles(node: Mapping[str, Any]) -> list[str]:
    return [label for label in node["metadata"]["labels"] if label.startswith(ROLE)]


def _address(node: Mapping[str, Any]) -> str:
    addresses = {each["type"]: each["address"] for each in node["status"]["addresses"]}
    return str(addresses["InternalIP"])
