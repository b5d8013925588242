"""Kubernetes stack: services as pods of one namespace, which is removed with all of them."""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
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
    BrokerClock,
    DataFolder,
    OnReady,
    RunningStack,
    Say,
    Unmeasurable,
    ignore,
)
from racetrack.stack.kubernetes import manifests, orphans, pods
from racetrack.stack.kubernetes.kubectl import Kubectl
from racetrack.stack.kubernetes.pods import Pod
from racetrack.stack.kubernetes.startup import Logs, wait_until_ready
from racetrack.stack.lifetime import UpFile, Watchdog, require_not_running

ROLE = "role.racetrack.dev/"  # begin of the labels of nodes
CORES = ("engine_cpus", "broker_cpus", "loadgen_cpus")
UNSET = "Leave it empty."
REMEDY = "Enlarge it (sizeLimit in the service's manifest)"
CANT_KILL = (
    "{} can't be killed in a pod: Kubernetes would start it again at once. Pause it instead, or set"
    " RUNTIME=native."
)


class KubernetesStack(ContainerStack):
    """Services as pods of the current cluster; see `racetrack.stack.contract.Stack`."""

    runtime = "kubernetes"
    helper_programs = ("kube", "containerd", "etcd", "coredns")
    broker_clock: BrokerClock | None = None

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
        wanted = manifests.of_services(self._kubectl, self.settings, each_once(services))
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
        self._watchdog.begin(logs.parent if logs else None, say)
        self._root.mkdir(mode=0o700, exist_ok=True)
        logs = logs or self._root / "logs"
        logs.mkdir(exist_ok=True)
        self._started = _Started(Logs(self._kubectl, logs))
        self._create(manifests.of_services(self._kubectl, self.settings, wanted))
        found = wait_until_ready(
            self._kubectl, self._started.logs, wanted, say, _both(services, on_ready)
        )
        for pod in found:
            self._started.pods.append(pod)
            if not self.unmeasurable:
                self._started.live.setdefault(pod.service, []).append(pods.live(pod.container_id))

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
        live = self._started.live if self._started else {}
        return [
            DataFolder(folder, f"{folder} of {shown(name)}", REMEDY)
            for name in live
            for folder in self.folders_in_memory(name)
        ]

    def log_of(self, service: str) -> Path:
        """Return the file that receives the output of the service's pods."""
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
            shown(name): f"its process ended; the end of its log:\n{self._up.logs.tail(name)}"
            for name, live in self._up.live.items()
            if not all(each.runs() for each in live)
        }

    def survives_kill(self, service: str) -> bool:  # noqa: ARG002  # the contract's
        """Return False: a pod starts again at once, and empty."""
        return False

    def kill(self, services: Sequence[str]) -> None:
        """Refuse.

        Raises:
            RacetrackError: always.
        """
        raise RacetrackError(CANT_KILL.format(services[0]))

    def pause(self, service: str) -> None:
        """Stop all processes of the service's pods; their connections stay open."""
        for process in self._processes(service):
            process.suspend()

    def resume(self, service: str) -> None:
        """Continue a paused service."""
        for process in self._processes(service):
            process.resume()

    def restart(self, service: str) -> None:
        """Refuse, as `kill` does.

        Raises:
            RacetrackError: always.
        """
        raise RacetrackError(CANT_KILL.format(service))

    def versions(self) -> Mapping[str, str]:
        """Return the cluster's version, each service's image, and each pod's node."""
        images = {pod.service: pod.image for pod in self._up.pods}
        nodes = {f"node of {pod.name}": pod.node for pod in self._up.pods}
        return {"kubernetes": self._version, **images, **nodes}

    def stop(self, say: Say) -> None:
        """Remove the namespace with everything in it, whatever started it. Idempotent."""
        self._watchdog.wait_for_last(say)
        began = time.monotonic()
        if self._started:
            self._started.live.clear()
        was_there = orphans.remove_namespace(self._kubectl)
        if self._started:
            self._started.logs.close()
        if self._root.exists():
            shutil.rmtree(self._root)
        self._watchdog.dismiss()
        if was_there:
            took_s = time.monotonic() - began
            say(f"  removed the namespace {self._kubectl.namespace} in {took_s:.1f} s")

    def leave_running(self, engine: str) -> None:
        """Leave the stack running when this command ends."""
        services = sorted({shown(pod.service) for pod in self._up.pods})
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
        return self._up.live.get(called(service), [])

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
    """What is known of the pods of a started stack; `live` by the service's name in pods."""

    logs: Logs
    pods: list[Pod] = field(default_factory=list)
    live: dict[str, list[Live]] = field(default_factory=dict)


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
