"""Orphan cleanup: removes the namespace that a killed run left behind.

The watchdog keeps this module loaded while engines are measured, so it imports little.
"""

import os
import tempfile
from pathlib import Path

from racetrack.stack import processes
from racetrack.stack.kubernetes.kubectl import Kubectl

# Label of each stack's namespace: the program that created it.
STARTED_BY, HARNESS = "racetrack.dev/started-by", "harness"
GONE_WITHIN_S = 120.0
DRAINED_FOR = "racetrack.dev/drained-for"  # label of a node: the namespace of the run
OURS = "app.kubernetes.io/part-of=racetrack"  # selects the pods of all runs


def work_root(stack_name: str) -> Path:
    """Return the folder for the files that a stack has outside of the cluster."""
    return Path(tempfile.gettempdir()) / f"racetrack-{os.getuid()}-{stack_name}.kubernetes"


def clear_at_once(stack_name: str) -> str | None:
    """Kill the harness's commands, and remove the stack's namespace with everything in it.

    Return a description of what was removed; None if there was nothing.

    Raises:
        RacetrackError: the cluster does not answer, or does not remove the namespace in time.
    """
    commands = sorted({member.service for member in processes.kill_commands(stack_name)})
    kubectl = Kubectl(stack_name)
    uncordon(kubectl)
    what = [f"the namespace {kubectl.namespace}"] if remove_namespace(kubectl) else []
    processes.remove(work_root(stack_name))
    return " and ".join(what + ([f"`{'`, `'.join(commands)}`"] if commands else [])) or None


def uncordon(kubectl: Kubectl) -> None:
    """Allow pods again on the nodes that this stack has drained."""
    for node in kubectl.get("nodes", f"--selector={DRAINED_FOR}={kubectl.namespace}"):
        name = str(node["metadata"]["name"])
        kubectl.run("uncordon", name)
        kubectl.run("label", "node", name, f"{DRAINED_FOR}-")


def remove_namespace(kubectl: Kubectl) -> bool:
    """Remove the stack's namespace if the harness created it; return whether it was there.

    Raises:
        ClusterFailed: it is not gone in time.
    """
    selector = f"--selector={STARTED_BY}={HARNESS}"
    own = f"--field-selector=metadata.name={kubectl.namespace}"
    if not kubectl.get("namespaces", selector, own):
        return False
    # Pods get their own grace period, which is short (kubernetes/pods).
    kubectl.run(
        "delete",
        "namespace",
        kubectl.namespace,
        "--ignore-not-found",
        f"--timeout={GONE_WITHIN_S:.0f}s",
        within_s=GONE_WITHIN_S + 5,
    )
    return True
