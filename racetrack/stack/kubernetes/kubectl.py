"""Runs `kubectl` against the current context, in the namespace of one stack."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from racetrack.errors import RacetrackError, SetupError
from racetrack.stack import processes

ANSWER_WITHIN_S = 60.0
COMMAND = "kubectl"
TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")  # this file exists only in pods


class NoCluster(SetupError):
    """No Kubernetes cluster can be used; the message contains the reason and a remedy."""


class ClusterFailed(RacetrackError):
    """`kubectl` failed; the message contains its output."""


class Kubectl:
    """The `kubectl` command for the namespace of the stack `stack_name`."""

    def __init__(self, stack_name: str) -> None:
        self._stack_name = stack_name
        self.namespace = namespace_of(stack_name)

    def run(
        self, *arguments: str, stdin: str | None = None, within_s: float = ANSWER_WITHIN_S
    ) -> str:
        """Return the output of a command.

        Raises:
            NoCluster: there is no `kubectl`.
            ClusterFailed: the command failed, or took longer than `within_s`.
        """
        done = self._call(arguments, stdin=stdin, within_s=within_s)
        return done.stdout.decode()

    def fetch(self, output: IO[bytes], *arguments: str, within_s: float) -> str:
        """Write the output of a command to a file; return what it wrote to standard error.

        Raises:
            NoCluster, ClusterFailed: see `run`.
        """
        return self._call(arguments, output=output, within_s=within_s).stderr.decode()

    def _call(
        self,
        arguments: Sequence[str],
        *,
        within_s: float,
        stdin: str | None = None,
        output: IO[bytes] | int = subprocess.PIPE,
    ) -> "subprocess.CompletedProcess[bytes]":
        try:
            done = subprocess.run(
                [COMMAND, "--namespace", self.namespace, *arguments],
                input=None if stdin is None else stdin.encode(),
                stdin=subprocess.DEVNULL if stdin is None else None,
                stdout=output,
                stderr=subprocess.PIPE,
                check=False,
                timeout=within_s,
                # A session of its own: Ctrl-C must reach only the harness, which then needs
                # `kubectl` to remove the namespace.
                start_new_session=True,
            )
        except FileNotFoundError:
            raise NoCluster("There is no `kubectl` on PATH. Install it.") from None
        except subprocess.TimeoutExpired:
            raise ClusterFailed(
                f"`kubectl {arguments[0]}` did not end within {within_s:.0f} s. Does the cluster"
                " answer (`kubectl get nodes`)?"
            ) from None
        if done.returncode:
            errors = done.stderr.decode(errors="replace").strip()
            raise ClusterFailed(f"`kubectl {' '.join(arguments[:3])}` failed: {errors}")
        return done

    def get(self, *what: str) -> list[dict[str, Any]]:
        """Return the objects that `kubectl get` finds."""
        found: list[dict[str, Any]] = json.loads(self.run("get", *what, "--output=json"))["items"]
        return found

    def apply(self, objects: Sequence[Mapping[str, object]]) -> None:
        """Create these objects, or change them."""
        listed = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        # Server-side, because otherwise kubectl would keep a copy of each secret in an annotation.
        self.run("apply", "--server-side", "--filename=-", stdin=json.dumps(listed))

    def render(self, folder: Path) -> list[dict[str, Any]]:
        """Return the objects of a Kustomize folder."""
        text = self.run("create", "--dry-run=client", "--output=json", f"--kustomize={folder}")
        # kubectl prints one object after the other.
        found: list[dict[str, Any]] = []
        decoder, at = json.JSONDecoder(), 0
        while at < len(text.rstrip()):
            each, at = decoder.raw_decode(text, at)
            found += each["items"] if each["kind"] == "List" else [each]
            at += len(text[at:]) - len(text[at:].lstrip())
        return found

    def follow_log(self, pod: str, container: str, log: Path) -> "subprocess.Popen[bytes]":
        """Begin to copy the output of a pod to a file, until its container ends."""
        with log.open("ab") as file:
            return subprocess.Popen(
                [COMMAND, "--namespace", self.namespace, "logs", "--follow", pod, container],
                # The watchdog finds and ends the command by this mark. The rest of the environment
                # is the user's, which may contain the address of the cluster.
                env={**os.environ, **processes.mark_command(self._stack_name, COMMAND)},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def server_version(self) -> str:
        """Return the version of the cluster.

        Raises:
            NoCluster: no cluster answers.
        """
        if shutil.which(COMMAND) is None:
            raise NoCluster("There is no `kubectl` on PATH. Install it.")
        try:
            said = self.run("version", "--output=json")
        except ClusterFailed as error:
            raise NoCluster(
                f"No Kubernetes cluster answers: {error} Choose one with `kubectl config"
                " use-context`, or set KUBECONFIG."
            ) from None
        return str(json.loads(said)["serverVersion"]["gitVersion"])


def is_in_a_pod(token: Path = TOKEN) -> bool:
    """Return whether this process runs in a pod of the cluster."""
    return token.exists()


def namespace_of(stack_name: str) -> str:
    """Return the namespace of a stack: its name, as Kubernetes allows it."""
    return stack_name.replace("_", "-").rstrip("-")
