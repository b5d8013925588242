"""Tests of reading a pod's status from the API server."""

from typing import Any

import pytest

from racetrack.stack.kubernetes import pods
from racetrack.stack.kubernetes.pods import Pod

OUT_OF_MEMORY = {"exitCode": 137, "reason": "OOMKilled"}
RUNNING = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}


def pod(state: dict[str, Any] = RUNNING, *, ready: bool = False, **status: Any) -> Pod:
    limits = status.pop("limits", {})
    container = {
        "name": "mysql",
        "state": state,
        "lastState": status.pop("last", {}),
        "image": "racetrack/airgap-mysql:0.1.0",
        "imageID": status.pop("image_id", "sha256:12ab"),
        "containerID": "containerd://c0ffee",
    }
    made = {
        "metadata": {"name": "mysql-0", "labels": {"racetrack.dev/service": "mysql"}},
        "spec": {
            "nodeName": "node1",
            "containers": [{"name": "mysql", "resources": {"limits": limits}}],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": str(ready)}],
            "containerStatuses": [container],
            **status,
        },
    }
    (found,) = pods.read_all([made])
    return found


def test_a_ready_pod_and_one_that_can_not_start() -> None:
    found = pod(ready=True)
    assert found.is_ready and found.has_started and not found.problem
    assert (found.service, found.node, found.container_id) == ("mysql", "node1", "c0ffee")
    assert not pod({"waiting": {"reason": "ContainerCreating"}}).problem
    found = pod({"waiting": {"reason": "ErrImageNeverPull", "message": "not present"}})
    assert "ErrImageNeverPull" in found.problem and not found.has_started
    labels = {"racetrack.dev/service": "mysql"}
    made = {"metadata": {"name": "mysql-0", "labels": labels}, "spec": {}, "status": {}}
    (found,) = pods.read_all([made | {"status": {"phase": "Pending"}}])
    assert (found.node, found.container_id, found.has_started) == ("", "", False)


def test_an_image_is_named_by_its_digest_where_a_registry_has_it() -> None:
    assert pod().image == "racetrack/airgap-mysql:0.1.0 (id sha256:12ab)"
    pulled = pod(image_id="registry.example.com/racetrack/airgap-mysql@sha256:34cd")
    assert pulled.image == "racetrack/airgap-mysql:0.1.0@sha256:34cd"


@pytest.mark.parametrize(
    ("ended", "limits", "problems"),
    [
        ({"exitCode": 3, "reason": "Error"}, {}, ["exit code 3"]),
        (OUT_OF_MEMORY, {"memory": "64Mi"}, ["memory ran out", "container may use 64Mi"]),
        (OUT_OF_MEMORY, {"cpu": "1"}, ["memory ran out", "its node"]),
    ],
)
def test_one_that_ended_has_a_problem_even_if_it_was_started_again(
    ended: dict[str, Any], limits: dict[str, str], problems: list[str]
) -> None:
    for found in (
        pod({"terminated": ended}, limits=limits),
        pod(last={"terminated": ended}, limits=limits),
    ):
        assert all(problem in found.problem for problem in problems)


def test_why_it_is_not_ready_yet() -> None:
    nowhere = {"type": "PodScheduled", "status": "False", "message": "0/2 nodes are available"}
    assert "0/2 nodes are available" in pod(conditions=[nowhere]).waits_for
    assert pod().waits_for != pod(initContainerStatuses=[{"state": RUNNING}]).waits_for
