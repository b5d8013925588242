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

from racetrack.config import REPO
from racetrack.images import IMAGES, image_name

pytestmark = pytest.mark.slow

VERSIONS = ("1.31.0", "1.34.0", "1.37.0")
ENGINES = REPO / "racetrack" / "engines"
FULL, SMALL = (sorted(ENGINES.glob(f"*/kubernetes/{size}")) for size in ("full", "small"))
JOB = sorted((REPO / "kubernetes" / "job").iterdir())
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
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
def test_a_pod_goes_to_a_node_of_its_role_and_runs_an_image_that_is_built(folder: Path) -> None:
    known = {image_name(name) for name in IMAGES}
    for pod in pods(folder):
        role = pod["metadata"]["labels"]["racetrack.dev/role"]
        assert role in ROLES
        assert pod["spec"]["nodeSelector"] == {f"role.racetrack.dev/{role}": ""}
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert {container["image"] for container in containers(pod)} <= known
    # The agent only reads its node.
    (agent,) = (each["spec"] for each in rendered(folder) if each["kind"] == "DaemonSet")
    spec = agent["template"]["spec"]
    (container,) = spec["containers"]
    assert spec["automountServiceAccountToken"] is False
    assert container["image"] == image_name("serve")
    assert "privileged" not in container["securityContext"]
    programs = {volume["name"] for volume in spec["volumes"] if "configMap" in volume}
    written = {each["name"] for each in container["volumeMounts"] if not each.get("readOnly")}
    assert len(programs) == 1 and written == programs


@pytest.mark.parametrize("folder", FULL, ids=name_of)
def test_pods_have_whole_cores_and_no_shared_nodes(folder: Path) -> None:
    for pod in pods(folder):
        roles, *more = pod["spec"]["affinity"]["podAntiAffinity"][REQUIRED]
        assert roles["mismatchLabelKeys"] == ["racetrack.dev/role"]
        if pod["metadata"]["labels"]["racetrack.dev/role"] == "broker":  # nor with each other
            (brokers,) = more
            assert brokers["topologyKey"] == roles["topologyKey"]
            assert brokers["labelSelector"] == {"matchLabels": {"racetrack.dev/role": "broker"}}
        for container in containers(pod):
            resources = container["resources"]
            assert resources["requests"] == resources["limits"]
            assert resources["limits"]["cpu"].isdecimal()


@pytest.mark.parametrize("folder", JOB, ids=lambda folder: str(folder.name))
def test_the_job_is_tried_once_on_the_generators_node_and_has_few_rights(folder: Path) -> None:
    kinds = {each["kind"]: each for each in rendered(folder)}
    job = kinds["Job"]["spec"]
    spec = job["template"]["spec"]
    assert (job["backoffLimit"], spec["restartPolicy"]) == (0, "Never")
    assert spec["nodeSelector"] == {"role.racetrack.dev/generator": ""}
    assert {each["image"] for each in spec["containers"]} == {image_name("harness")}
    for rule in kinds["ClusterRole"]["rules"]:
        assert "*" not in [*rule["verbs"], *rule["resources"], *rule["apiGroups"]]
        if "secrets" in rule["resources"]:
            assert rule["verbs"] == ["create", "patch"]
        if "namespaces" in rule["resources"] and "delete" in rule["verbs"]:
            assert rule["resourceNames"] == ["racetrack"]
