"""A simulated cluster for tests: a `kubectl`, and objects as it reports them."""

import json
import sys
from pathlib import Path
from typing import Any

from racetrack.stack.kubernetes.kubectl import Kubectl

Object = dict[str, Any]

RUNNING: Object = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
# A simulated `kubectl`: it answers by its first arguments, from the file `answers` beside it, and
# records its commands and the applied objects.
KUBECTL = f"""#!{sys.executable}
import json, pathlib, sys
here = pathlib.Path(__file__).parent
command = " ".join(sys.argv[3:])
with (here / "commands").open("a") as file:
    file.write(command + "\\n")
if command.startswith("apply"):
    (here / "applied").open("a").write(sys.stdin.read() + "\\n")
answers = json.loads((here / "answers").read_text())
for begin, (code, answer) in sorted(answers.items(), key=lambda each: -len(each[0])):
    if command.startswith(begin):
        print(answer, file=sys.stderr if code else sys.stdout)
        sys.exit(code)
sys.exit(f"no answer to {{command}}")
"""


def node(name: str, *roles: str, address: str = "10.0.0.1") -> Object:
    labels = {f"role.racetrack.dev/{role}": "" for role in roles}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": address}],
        },
    }


def stateful_set(name: str, service: str = "", role: str = "support", **labels: str) -> Object:
    """Return pods of a service, by default of the one of the same name."""
    selector = {f"role.racetrack.dev/{role}": ""}
    labels = {"racetrack.dev/service": service or name} | labels
    spec = {"nodeSelector": selector, "containers": []}
    return {
        "kind": "StatefulSet",
        "metadata": {"name": name, "labels": labels},
        "spec": {"replicas": 1, "template": {"spec": spec}},
    }


def pod(
    name: str, state: Object = RUNNING, *, ready: bool = True, at: str = "one", **status: Any
) -> Object:
    """Return a pod with one container; `mysql-0` is of the service `mysql`."""
    service = name.rpartition("-")[0]
    container = {"name": service, "containerID": "containerd://c0ffee", "state": state}
    return {
        "metadata": {"name": name, "labels": {"racetrack.dev/service": service}},
        "spec": {"nodeName": at, "containers": [{"name": service}]},
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": str(ready)}],
            "containerStatuses": [container],
            **status,
        },
    }


class Cluster:
    """A simulated cluster, with the answers of its `kubectl`."""

    def __init__(self, folder: Path, program: str = KUBECTL) -> None:
        self._folder = folder
        self._answers: dict[str, tuple[int, str]] = {}
        self.says("version", {"serverVersion": {"gitVersion": "v1.34.4"}})
        self.has("nodes", node("one", "broker", "generator", "support", "engine"))
        self.has("nodes --selector")  # the drained nodes
        self.has("namespaces")
        self.says("create", stateful_set("mysql"))
        (folder / "kubectl").write_text(program)
        (folder / "kubectl").chmod(0o755)

    def says(self, begin: str, answer: object, code: int = 0) -> None:
        text = answer if isinstance(answer, str) else json.dumps(answer)
        self._answers[begin] = code, text
        (self._folder / "answers").write_text(json.dumps(self._answers))

    def has(self, kind: str, *items: Object) -> None:
        self.says(f"get {kind}", {"items": items})

    def renders(self, *objects: Object) -> Kubectl:
        """Let every folder contain these objects; return a client."""
        self.says("create", {"kind": "List", "items": objects})
        return Kubectl("test_it")

    def commands(self) -> list[str]:
        return (self._folder / "commands").read_text().splitlines()

    def changes(self) -> list[str]:
        """Return the commands that change something."""
        return [each for each in self.commands() if not each.startswith(("get", "create"))]

    def applied(self) -> list[Object]:
        lines = (self._folder / "applied").read_text().splitlines()
        return [each for line in lines for each in json.loads(line)["items"]]
