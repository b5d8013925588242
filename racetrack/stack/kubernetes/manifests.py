"""Manifests of the services of a stack, with the settings of this run."""

from collections.abc import Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from racetrack import kafka_endpoint, units
from racetrack.config import REPO, Settings, revealed
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.stack.containers import KAFKA, called
from racetrack.stack.kubernetes import own_files
from racetrack.stack.kubernetes.kubectl import Kubectl
from racetrack.stack.kubernetes.orphans import HARNESS, STARTED_BY

BASE = REPO / "kubernetes" / "base"
SERVE = ("python", "-m", "racetrack.stack.native.serve")
ENGINES = REPO / "racetrack" / "engines"
FULL = "*/kubernetes/full"
SERVICE = "racetrack.dev/service"  # label of all objects of a service
# Label of pods: name of the setting that contains their number. A Service with this label leads to
# the first of these pods.
SCALES = "racetrack.dev/scales"
# Label with the pod's name, which Kubernetes gives to each pod.
POD = "statefulset.kubernetes.io/pod-name"
OUTSIDE = "outside"  # name of the brokers' port for clients outside the cluster
ROLE = "role.racetrack.dev/"  # prefix of the labels that give roles to nodes
PORT = "racetrack.dev/port-"  # annotation of a Service: port → setting
Object = dict[str, Any]


def missing(services: Sequence[str]) -> list[str]:
    """Return the services that have no manifest, which is a file named after the service."""
    folders = (BASE, *_engine_folders(services))
    here = {file.stem for folder in folders for file in folder.glob("*.yaml")}
    return [name for name in services if called(name) not in here]


def of_services(kubectl: Kubectl, settings: Settings, services: Sequence[str]) -> list[Object]:
    """Return the objects of these services (names in containers). Their Services can also be
    reached from outside the cluster."""
    size = "small" if settings.kubernetes_small else "full"
    found: dict[tuple[str, str], Object] = {}  # engines share some objects
    known: set[str] = set()
    # Each engine's manifests contain the objects that all engines share. If no engine starts here,
    # use those of any engine.
    for folder in _engine_folders(services) or [*sorted(ENGINES.glob(FULL))[:1]]:
        for each in kubectl.render(folder.parent / size):
            service = each["metadata"]["labels"].get(SERVICE, "")
            known.add(service)
            if service in services:
                found[each["kind"], each["metadata"]["name"]] = each
    kafka = kafka_endpoint.elsewhere(settings)
    scaled = [object_ for each in found.values() for object_ in _scaled(each, settings)]
    absent = known - {*services}
    for each in scaled:
        if kafka:
            _use(kafka, each)
            if pod := each.get("spec", {}).get("template", {}).get("spec"):
                own_files.mount(pod, settings)
        if each["kind"] == "Service":
            # Each node forwards the port, so that one address leads to all services.
            each["spec"]["type"] = "NodePort"
        for container in _containers(each):
            container["image"] = settings.kubernetes_registry + container["image"]
            if "command" in container:  # do not wait for services that are not started
                command = container["command"]
                container["command"] = [w for w in command if not _is_address(w, absent)]
    return scaled


def _is_address(word: str, services: Collection[str]) -> bool:
    host, _, port = word.partition(":")
    return host in services and port.isdigit()


def namespace(name: str) -> Object:
    """Return the namespace of a stack."""
    # The agents need privileges, because they read the processes of their node.
    labels = {STARTED_BY: HARNESS, "pod-security.kubernetes.io/enforce": "privileged"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _use(kafka: KafkaEndpoint, each: Object) -> None:
    """Let pods use a Kafka that runs elsewhere, whose address is in the settings. The broker's pod
    then runs only the registry."""
    first, *_ = kafka.servers.split(",")
    for container in _containers(each):
        env = container.get("env", [])
        container["env"] = [one for one in env if one["name"] != kafka_endpoint.BOOTSTRAP]
        if "command" in container:
            command = container["command"]
            container["command"] = [first if word == KAFKA else word for word in command]
    if each["kind"] == "StatefulSet" and each["metadata"]["name"] == called("broker"):
        pod = each["spec"]["template"]
        pod["metadata"]["labels"]["racetrack.dev/role"] = "support"
        pod["spec"]["nodeSelector"] = {f"{ROLE}support": ""}
        (container,) = pod["spec"]["containers"]
        container["command"] = [*SERVE, "registry"]
        if "limits" in container["resources"]:
            least = {"cpu": "1", "memory": "1Gi"}
            container["resources"] = {"requests": least, "limits": least}


def configuration(settings: Settings, kafka_outside: str) -> list[Object]:
    """Return the Secrets and ConfigMaps with settings and scripts that the manifests refer to.

    `kafka_outside` has the address (host:port) of each broker for clients outside the cluster,
    separated by commas.
    """
    given = {**revealed(settings), "RUNTIME": "native", "KAFKA_OUTSIDE": kafka_outside}
    given["KUBERNETES_JOB"] = "false"  # KUBERNETES_JOB=true would be invalid with RUNTIME=native
    if kafka := kafka_endpoint.elsewhere(settings):
        given |= own_files.as_in_pods(kafka).environment() | own_files.environment(settings)
    inside = (REPO / "racetrack" / "engines" / "inside.env").read_text()
    lines = [line for line in inside.splitlines() if line and not line.startswith("#")]
    folder = REPO / "scripts"
    files = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*.*")}
    # Names in a ConfigMap have no folders.
    scripts = {name.replace("/", "."): file.read_text() for name, file in files.items()}
    return [
        own_files.secret("settings", given),
        *own_files.secrets(settings),
        _config_map("inside", dict(line.split("=", 1) for line in lines)),
        _config_map("scripts", scripts),
    ]


def node_ports(services: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return setting (lower case) → the nodes' port, from Services that the cluster created."""
    found = {}
    for each in services:
        for port in each["spec"]["ports"]:
            setting = each["metadata"].get("annotations", {}).get(f"{PORT}{port['port']}")
            if setting:
                found[setting.lower()] = int(port["nodePort"])
    return found


def outside_ports(services: Sequence[Mapping[str, Any]]) -> list[int]:
    """Return broker's number → the nodes' port for the broker's clients outside the cluster, from
    Services that the cluster created."""
    by_number = {
        _number(each["metadata"]["name"]): int(port["nodePort"])
        for each in services
        for port in each["spec"]["ports"]
        if port.get("name") == OUTSIDE
    }
    return [by_number[number] for number in sorted(by_number)]


@dataclass(frozen=True)
class Workload:
    """A StatefulSet: a set of equal pods, named `<name>-0`, `<name>-1` and so on."""

    name: str
    service: str  # in containers
    replicas: int

    @property
    def pods(self) -> list[str]:
        """Names of the pods."""
        return [f"{self.name}-{number}" for number in range(self.replicas)]


def workloads(objects: Sequence[Object]) -> list[Workload]:
    """Return the sets of pods among these objects."""
    return [
        Workload(
            each["metadata"]["name"],
            each["metadata"]["labels"][SERVICE],
            each["spec"].get("replicas", 1),
        )
        for each in objects
        if each["kind"] == "StatefulSet"
    ]


def roles(each: Object) -> list[str]:
    """Return the labels that a node needs so that the pods of this object can run there."""
    return list(each.get("spec", {}).get("template", {}).get("spec", {}).get("nodeSelector", {}))


def volumes_in_memory(each: Object) -> dict[str, int]:
    """Return the in-memory volumes of these pods that have a size limit: mount path → limit in
    bytes."""
    pod = each.get("spec", {}).get("template", {}).get("spec", {})
    limits = {
        volume["name"]: volume["emptyDir"]["sizeLimit"]
        for volume in pod.get("volumes", [])
        if volume.get("emptyDir", {}).get("medium") == "Memory"
        and "sizeLimit" in volume["emptyDir"]
    }
    return {
        mount["mountPath"]: units.parse_size_bytes(f"{limits[mount['name']]}B")
        for container in pod.get("containers", [])
        for mount in container.get("volumeMounts", [])
        if mount["name"] in limits
    }


def _engine_folders(services: Sequence[str]) -> list[Path]:
    """Return the manifest folders of the engines that run one of these services."""
    return [
        folder
        for folder in sorted(ENGINES.glob(FULL))
        if any((folder / f"{called(name)}.yaml").exists() for name in services)
    ]


def _scaled(each: Object, settings: Settings) -> list[Object]:
    """Return an object, adapted to the number of pods in the settings. A Service is copied for each
    further pod."""
    if not (setting := each["metadata"]["labels"].get(SCALES)):
        return [each]
    replicas: int = getattr(settings, setting.lower())
    if each["kind"] != "Service":
        return [{**each, "spec": {**each["spec"], "replicas": replicas}}]
    return [each, *(_service_of(each, number) for number in range(1, replicas))]


def _service_of(first: Object, number: int) -> Object:
    """Return the Service of a further pod, like that of the first pod."""
    name = f"{first['metadata']['name'].rpartition('-')[0]}-{number}"
    found = deepcopy(first)
    found["metadata"] = {"name": name, "labels": found["metadata"]["labels"]}
    found["spec"]["selector"][POD] = name
    return found


def _number(name: str) -> int:
    return int(name.rpartition("-")[2])


def _containers(each: Object) -> list[Object]:
    pod = each.get("spec", {}).get("template", {}).get("spec", {})
    return [*pod.get("initContainers", []), *pod.get("containers", [])]


def _config_map(name: str, data: Mapping[str, str]) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": dict(data)}
