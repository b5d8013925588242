"""Tests of reading a pod's status from the API server."""

from typing import Any

import pytest

from racetrack.stack.kubernetes import pods
from racetrack.stack.kubernetes.pods import Pod
from tests.stack.kubernetes.cluster import RUNNING, Object, pod

OUT_OF_MEMORY = {"exitCode": 137, "reason": "OOMKilled"}


def read(
    state: Object = RUNNING,
    *,
    ready: bool = False,
    limits: Object | None = None,
    last: Object | None = None,
) -> Pod:
    made = pod("mysql-0", state, ready=ready)
    made["spec"]["containers"][0]["resources"] = {"limits": limits or {}}
    container = {"lastState": last or {}, "image": "racetrack/airgap-mysql:0.1.0"}
    made["status"]["containerStatuses"][0] |= container
    (found,) = pods.read_all([made])
    return found


def test_a_ready_pod_and_one_that_can_not_start() -> None:
    found = read(ready=True)
    assert found.is_ready and found.has_started and not found.problem
    assert (found.service, found.node, found.container_id) == ("mysql", "one", "c0ffee")
    assert not read({"waiting": {"reason": "ContainerCreating"}}).problem
    found = read({"waiting": {"reason": "ErrImageNeverPull", "message": "not present"}})
    assert "ErrImageNeverPull" in found.problem and not found.has_started
    (found,) = pods.read_all([pod("mysql-0") | {"spec": {}, "status": {"phase": "Pending"}}])
    assert (found.node, found.container_id, found.has_started) == ("", "", False)


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
    now = read({"terminated": ended}, limits=limits)
    before = read(last={"terminated": ended}, limits=limits)
    for problem in problems:
        assert problem in now.problem and problem in before.problem
