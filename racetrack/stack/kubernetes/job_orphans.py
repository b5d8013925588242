"""Orphan cleanup for a harness that runs as a Kubernetes Job: removes the Job, and what its run
left behind."""

from racetrack.stack.kubernetes import orphans
from racetrack.stack.kubernetes.kubectl import Kubectl


def stack_name_of_job(stack_name: str) -> str:
    """Return the name from which the namespace of a stack's Job is derived; the stack's own
    namespace is another one."""
    return f"{stack_name}-job"


def clear_at_once(stack_name: str) -> str | None:
    """Remove the Job of a stack, then the stack itself: a harness that still runs would create the
    stack again.

    Return a description of what was removed; None if there was nothing.

    Raises:
        RacetrackError: the cluster does not answer, or does not remove a namespace in time.
    """
    removed = [remove_job(stack_name), orphans.clear_at_once(stack_name)]
    return " and ".join(filter(None, removed)) or None


def remove_job(stack_name: str) -> str | None:
    """Remove the Job of a stack after its harness has cleaned up, and then the roles that the Job
    was given.

    Return a description of what was removed; None if there was nothing.

    Raises:
        RacetrackError: the cluster does not answer, or does not remove the namespace in time.
    """
    removed = orphans.clear_at_once(stack_name_of_job(stack_name))
    job = Kubectl(stack_name_of_job(stack_name))
    job.run("delete", "clusterrole,clusterrolebinding", job.namespace, "--ignore-not-found")
    return removed
