"""Tests that the manifests are valid in three versions of Kubernetes, and match their comments."""

import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from racetrack.config import REPO, every_setting
from racetrack.images import IMAGES, image_name

pytestmark = pytest.mark.slow

VERSIONS = ("1.31.0", "1.34.0", "1.37.0")
ENGINES = REPO / "racetrack" / "engines"
FULL, SMALL = (sorted(ENGINES.glob(f"*/kubernetes/{size}")) for size in ("full", "small"))
JOB = sorted((REPO / "kubernetes" / "job").iterdir())
ROLES = {"broker", "engine", "generator", "support"}
Object = dict[str, Any]


def name_of(folder: Path) -> str:
    return f"{folder.parts[-3]}-{folder.name}"


every_folder = pytest.mark.parametrize("folder", [*FULL, *SMALL], ids=name_of)


@cache
def rendered(folder: Path) -> list[Object]:
    """Return the objects that `kubectl apply -k` would create."""
    if shutil.which("kubectl") is None:
        pytest.skip("there is no `kubectl` on PATH")
    done = subprocess.run(
        ["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [dict(each) for each in yaml.safe_load_all(done.stdout)]


def pods(folder: Path) -> Iterator[Object]:
    for each in rendered(folder):
        if each["kind"] == "StatefulSet":
            yield each["spec"]["template"]


def containers(pod: Object) -> list[Object]:
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("folder", [*FULL, *SMALL, *JOB], ids=name_of)
def test_the_schemas_of_kubernetes_accept_them(folder: Path, version: str) -> None:
    for each in rendered(folder):
        kubernetes_validate.validate(each, version, strict=True)


@every_folder
def test_what_all_pods_have_in_common(folder: Path) -> None:
    for pod in pods(folder):
        spec = pod["spec"]
        assert spec["enableServiceLinks"] is False
        assert spec["automountServiceAccountToken"] is False
        assert spec["terminationGracePeriodSeconds"] == 2
        (container,) = spec["containers"]
        assert {"startupProbe"} == {name for name in container if name.endswith("Probe")}
        assert container["startupProbe"]["periodSeconds"] == 1


@every_folder
def test_the_agent_only_reads_its_node(folder: Path) -> None:
    (agent,) = (each for each in rendered(folder) if each["kind"] == "DaemonSet")
    spec = agent["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert spec["automountServiceAccountToken"] is False
    assert container["image"] == image_name("serve")
    assert "privileged" not in container["securityContext"]
    (program,) = (volume["name"] for volume in spec["volumes"] if "configMap" in volume)
    assert {each["name"] for each in container["volumeMounts"] if not each.get("readOnly")} == {
        program
    }


@every_folder
def test_there_is_an_agent_on_each_node_with_a_role(folder: Path) -> None:
    (agent,) = (each for each in rendered(folder) if each["kind"] == "DaemonSet")
    affinity = agent["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    (terms,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"].values()
    labels = [term["matchExpressions"][0]["key"] for term in terms]
    assert labels == [f"role.racetrack.dev/{role}" for role in sorted(ROLES)]


@every_folder
def test_a_pod_goes_to_a_node_of_its_role(folder: Path) -> None:
    for pod in pods(folder):
        role = pod["metadata"]["labels"]["racetrack.dev/role"]
        assert role in ROLES
        assert pod["spec"]["nodeSelector"] == {f"role.racetrack.dev/{role}": ""}


@every_folder
def test_images_are_those_that_race_images_builds(folder: Path) -> None:
    known = {image_name(name) for name in IMAGES}
    for pod in pods(folder):
        assert {container["image"] for container in containers(pod)} <= known


@pytest.mark.parametrize("folder", FULL, ids=name_of)
def test_whole_cores_and_no_shared_nodes(folder: Path) -> None:
    for pod in pods(folder):
        assert "podAntiAffinity" in pod["spec"]["affinity"]
        for container in containers(pod):
            resources = container["resources"]
            assert resources["requests"] == resources["limits"]
            assert resources["limits"]["cpu"].isdecimal()


@pytest.mark.parametrize("folder", FULL, ids=name_of)
def test_brokers_never_share_a_node(folder: Path) -> None:
    (broker,) = (
        pod for pod in pods(folder) if pod["metadata"]["labels"]["racetrack.dev/role"] == "broker"
    )
    roles, brokers = broker["spec"]["affinity"]["podAntiAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
    assert roles["mismatchLabelKeys"] == ["racetrack.dev/role"]
    assert brokers["topologyKey"] == roles["topologyKey"]
    assert brokers["labelSelector"] == {"matchLabels": {"racetrack.dev/role": "broker"}}


@every_folder
def test_pods_that_scale_name_a_setting_that_counts_them(folder: Path) -> None:
    for each in rendered(folder):
        if setting := each["metadata"]["labels"].get("racetrack.dev/scales"):
            assert setting.lower() in every_setting()
            assert setting.endswith("_REPLICAS")


@pytest.mark.parametrize("folder", SMALL, ids=name_of)
def test_small_pods_share_nodes_and_cores(folder: Path) -> None:
    for pod in pods(folder):
        assert "affinity" not in pod["spec"]
        for container in containers(pod):
            assert container["resources"] == {"requests": {"cpu": "50m", "memory": "64Mi"}}


@every_folder
def test_ports_are_called_by_settings_that_exist(folder: Path) -> None:
    called = [
        setting
        for each in rendered(folder)
        for name, setting in each["metadata"].get("annotations", {}).items()
        if name.startswith("racetrack.dev/port-")
    ]
    assert {"KAFKA_PORT", "MYSQL_PORT", "LOADGEN_PORT"} <= set(called)
    assert {name.lower() for name in called} <= set(every_setting())


def test_a_file_describes_the_service_of_its_name() -> None:
    of_engines = ENGINES.glob("*/kubernetes/full/*.yaml")
    files = {*(REPO / "kubernetes" / "base").glob("*.yaml"), *of_engines}
    for file in files:
        if file.stem != "kustomization":
            for each in yaml.safe_load_all(file.read_text()):
                assert each["metadata"]["labels"]["racetrack.dev/service"] == file.stem


def test_each_size_exists_for_each_engine() -> None:
    assert [folder.parts[-3] for folder in FULL] == [folder.parts[-3] for folder in SMALL]


@pytest.mark.parametrize("folder", JOB, ids=lambda folder: str(folder.name))
def test_the_job_is_tried_once_on_the_generators_node(folder: Path) -> None:
    (job,) = (each["spec"] for each in rendered(folder) if each["kind"] == "Job")
    spec = job["template"]["spec"]
    assert job["backoffLimit"] == 0
    assert spec["restartPolicy"] == "Never"
    assert spec["nodeSelector"] == {"role.racetrack.dev/generator": ""}
    assert {each["image"] for each in spec["containers"]} == {image_name("harness")}
    for container in spec["containers"]:
        resources, is_small = container["resources"], folder.name == "small"
        assert (resources["requests"] == resources.get("limits")) != is_small


@pytest.mark.parametrize("folder", JOB, ids=lambda folder: str(folder.name))
def test_the_job_has_no_right_to_everything(folder: Path) -> None:
    (role,) = (each for each in rendered(folder) if each["kind"] == "ClusterRole")
    for rule in role["rules"]:
        assert "*" not in [*rule["verbs"], *rule["resources"], *rule["apiGroups"]]
        if "secrets" in rule["resources"]:
            assert rule["verbs"] == ["create", "patch"]
        if "namespaces" in rule["resources"] and "delete" in rule["verbs"]:
            assert rule["resourceNames"] == ["racetrack"]
