"""The harness as a Job. It is created and removed from outside; its output is shown, and its files
are copied, through the API server.

The manifests are in kubernetes/job. The Job has a namespace of its own, because the harness removes
the namespace of each run.
"""

import os
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from racetrack.clock import attempts
from racetrack.config import REPO, Settings
from racetrack.errors import RacetrackError
from racetrack.stack.contract import Say
from racetrack.stack.kubernetes import job_orphans, manifests, own_files, pods
from racetrack.stack.kubernetes.kubectl import ClusterFailed, Kubectl

MANIFESTS = REPO / "kubernetes" / "job"
# Names in the manifests: the namespace of a stack, and the namespace of its Job.
STACK, JOB = "racetrack", "racetrack-job"
SELECTOR = "racetrack.dev/job=harness"
HARNESS, FILES = "harness", "files"  # containers
STARTS_WITHIN_S = 180.0
LOOK_EVERY_S = 1.0
COPY_EVERY_S = 5.0
# Copying files may take at most this share of the time, even over a slow connection.
COPIES_SHARE = 0.3
COPIED_WITHIN_S = 120.0
# Give up if the cluster has not answered for this long. The harness in the Job does not depend on
# this connection.
SILENT_WITHIN_S = 600.0
CLEANS_UP_WITHIN_S = 150.0
OUTPUT_ENDS_WITHIN_S = 10.0
# Each copy also includes files from this long before the previous copy, because file times are
# rounded to seconds.
OVERLAP_S = 2
# Prints the time, then an archive of the files that are newer than the time $1.
PACK = (
    'cd /app/logs && date +%s >&2 && find . ! -type d -newermt "@$1" -print0'
    " | tar --create --no-recursion --null --files-from=- 2>/dev/null; true"
)
LIST = "cd /app/logs && find . -type f -printf '%s %P\\n'"
INTERRUPT = 'kill -s "$1" "$(cat /tmp/harness.pid)"'


class JobLost(RacetrackError):
    """The Job's pod disappeared before the harness had ended."""


class HarnessJob:
    """The Job of one command.

    `say` gets the output of the harness, and lines about the Job itself. The files that the harness
    writes into its logs folder are copied into `settings.logs_folder` on this machine.
    """

    def __init__(self, settings: Settings, say: Say) -> None:
        self._settings, self._logs, self._say = settings, settings.logs_folder, say
        self._kubectl = Kubectl(job_orphans.stack_name_of_job(settings.stack_name))
        self._stack = Kubectl(settings.stack_name).namespace
        self._pod = ""
        self._output = tempfile.NamedTemporaryFile()  # noqa: SIM115  # closed by `remove`
        self._follower: subprocess.Popen[bytes] | None = None
        self._shown_bytes = 0
        self._copied_until_s = 0  # by the pod's clock
        self._copied: set[str] = set()
        self._copy_at_s = 0.0

    def start(self, words: Sequence[str], environment: Mapping[str, str]) -> None:
        """Create the Job, which runs the command line `words`; return when the harness runs.
        `environment` is added to the harness's environment variables.

        Raises:
            RacetrackError: the pod does not start; the message contains the reason.
        """
        if cleared := job_orphans.clear_at_once(self._settings.stack_name):
            self._say(f"Removed what an earlier Job left: {cleared}.")
        self._kubectl.apply([manifests.namespace(self._kubectl.namespace)])
        self._kubectl.apply(
            [
                own_files.secret("environment", environment),
                own_files.secret("env-file", {".env": (REPO / ".env").read_text()}),
                *own_files.secrets(self._settings),
            ]
        )
        size = "small" if self._settings.kubernetes_small else "full"
        objects = self._kubectl.render(MANIFESTS / size)
        names = {STACK: self._stack, JOB: self._kubectl.namespace}
        self._kubectl.apply([self._prepared(renamed(each, names), list(words)) for each in objects])
        self._await_start()

    def follow(self, within_s: float | None = None) -> int:
        """Show the output of the harness and copy its files until it has ended; return its exit
        code.

        Raises:
            JobLost: the Job's pod is gone.
            ClusterFailed: the cluster does not answer, or the harness has not ended in `within_s`.
        """
        began_s = answered_s = time.monotonic()
        while True:
            self._follow_output()
            self._show_output()
            try:
                ended = self._ended()
                if time.monotonic() >= self._copy_at_s:
                    self.copy()
            except ClusterFailed as error:
                if time.monotonic() - answered_s > SILENT_WITHIN_S:
                    raise
                self._say(f"  {error} The Job goes on; trying again.")
            else:
                answered_s = time.monotonic()
                if ended:
                    return self._exit_code(ended)
            if within_s and time.monotonic() - began_s > within_s:
                raise ClusterFailed(f"The harness has not ended within {within_s:.0f} s.")
            time.sleep(LOOK_EVERY_S)

    def interrupt(self, signal: str) -> None:
        """Send a signal, such as `INT`, to the harness, which then cleans up and ends."""
        self._in_pod(HARNESS, INTERRUPT, signal)

    def copy(self) -> None:
        """Copy the files that are new since the last copy.

        Raises:
            ClusterFailed: the pod can't be reached, or the connection was lost.
        """
        began_s = time.monotonic()
        with tempfile.TemporaryFile() as archive:
            since_s = max(0, self._copied_until_s - OVERLAP_S)
            now = self._kubectl.fetch(
                archive, *self._exec(FILES, PACK, str(since_s)), within_s=COPIED_WITHIN_S
            )
            self._copied.update(unpack(archive, self._logs))
        self._copied_until_s = int(now.split()[0])
        took_s = time.monotonic() - began_s
        self._copy_at_s = time.monotonic() + max(COPY_EVERY_S, took_s / COPIES_SHARE)

    def copy_rest(self) -> None:
        """Copy what is missing after the harness has ended, and remove copies of temporary files.

        Raises:
            ClusterFailed: the pod can't be reached, or the connection was lost.
        """
        self.copy()
        lines = self._in_pod(FILES, LIST).splitlines()
        there = {name: int(size) for size, _, name in (line.partition(" ") for line in lines)}
        if any(size_of(self._logs / name) != size for name, size in there.items()):
            self._copied_until_s = 0
            self.copy()
        for name in self._copied - there.keys():
            (self._logs / name).unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the Job, and what its run left behind. Idempotent.

        Raises:
            RacetrackError: the cluster does not answer, or does not remove a namespace in time.
        """
        if self._follower:
            self._follower.kill()
            self._follower.wait()
        self._output.close()
        job_orphans.clear_at_once(self._settings.stack_name)

    def _prepared(self, each: manifests.Object, words: list[str]) -> manifests.Object:
        if each["kind"] == "Job":
            pod = each["spec"]["template"]["spec"]
            own_files.mount(pod, self._settings)
            for container in pod["containers"]:
                container["image"] = self._settings.kubernetes_registry + container["image"]
                if container["name"] == HARNESS:
                    container["args"] = words
        return each

    def _await_start(self) -> None:
        why = "the cluster has not created its pod"
        for _ in attempts(STARTS_WITHIN_S, LOOK_EVERY_S):
            for pod in self._kubectl.get("pods", f"--selector={SELECTOR}"):
                if "waiting" not in containers(pod).get(HARNESS, {"waiting": {}}):
                    self._pod = str(pod["metadata"]["name"])
                    node = pod["spec"]["nodeName"]
                    self._say(f"The harness runs on the node {node}, as the pod {self._pod}.")
                    return
                if problem := "; ".join(pods.problems(pod["status"])):
                    raise RacetrackError(f"The Job did not start: {problem}.")
                why = pods.why_on_no_node(pod["status"]) or "it is being created"
        raise RacetrackError(f"The Job did not start within {STARTS_WITHIN_S:.0f} s: {why}.")

    def _ended(self) -> Mapping[str, Any] | None:
        """Return how the harness's container has ended; None if it runs.

        Raises:
            JobLost: the pod is gone.
        """
        own = f"--field-selector=metadata.name={self._pod}"
        for pod in self._kubectl.get("pods", own):
            if ended := containers(pod).get(HARNESS, {}).get("terminated"):
                return dict(ended)
            if "deletionTimestamp" not in pod["metadata"]:
                return None
        raise JobLost(
            f"The pod {self._pod} was deleted, or its node is lost, so the run has ended. What was"
            f" copied is in {self._logs}."
        )

    def _exit_code(self, ended: Mapping[str, Any]) -> int:
        if self._follower:
            with suppress(subprocess.TimeoutExpired):
                self._follower.wait(OUTPUT_ENDS_WITHIN_S)
        self._show_output()
        if ended.get("reason") == "OOMKilled":
            self._say("The harness was killed by the kernel, because its pod's memory ran out.")
        return int(ended["exitCode"])

    def _follow_output(self) -> None:
        """Begin to follow the output; if the connection was lost, begin again."""
        if self._follower is None or self._follower.poll() is not None:
            output = Path(self._output.name)
            os.truncate(output, 0)
            self._follower = self._kubectl.follow_log(self._pod, HARNESS, output)

    def _show_output(self) -> None:
        with Path(self._output.name).open("rb") as file:
            file.seek(self._shown_bytes)
            new = file.read()
        whole, newline, _ = new.rpartition(b"\n")
        if newline:
            self._say(whole.decode(errors="replace"))
            self._shown_bytes += len(whole) + 1

    def _in_pod(self, container: str, script: str, *arguments: str) -> str:
        return self._kubectl.run(*self._exec(container, script, *arguments))

    def _exec(self, container: str, script: str, *arguments: str) -> tuple[str, ...]:
        shell = ("sh", "-c", script, "sh", *arguments)
        return ("exec", self._pod, f"--container={container}", "--", *shell)


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return a copy of an object in which each text that is one of `names` is replaced."""
    if isinstance(value, dict):
        return {key: renamed(of, names) for key, of in value.items()}
    if isinstance(value, list):
        return [renamed(each, names) for each in value]
    return names.get(value, value) if isinstance(value, str) else value


def containers(pod: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the state of each container of a pod, by name."""
    found = pod["status"].get("containerStatuses", [])
    return {each["name"]: each["state"] for each in found}


def unpack(archive: IO[bytes], folder: Path) -> list[str]:
    """Unpack an archive of files; return their names, relative to `folder`.

    Raises:
        ClusterFailed: the archive is incomplete.
    """
    archive.seek(0)
    try:
        with tarfile.open(fileobj=archive) as opened:
            names = [member.name.removeprefix("./") for member in opened if member.isfile()]
    except tarfile.TarError as error:
        raise ClusterFailed(f"A copy of the logs is not whole: {error}.") from None
    # Python's `seek` may move only within its buffer, but `tar` reads from the descriptor.
    os.lseek(archive.fileno(), 0, os.SEEK_SET)
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["tar", "--extract", "--no-same-owner", "--file=-", f"--directory={folder}"],
        stdin=archive,
        check=True,
        start_new_session=True,
    )
    return names


def size_of(file: Path) -> int | None:
    """Return the size of a file in bytes; None if there is no such file."""
    return file.stat().st_size if file.is_file() else None
