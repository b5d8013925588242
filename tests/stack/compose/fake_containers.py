"""Fake containers: a `docker` program and a client that agree on which containers there are.

Each container is a file with its state. Nothing runs in it, as for containers in a virtual machine.
"""

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import docker
from docker.errors import NotFound
from docker.models.images import Image

from racetrack.stack.compose import engine
from racetrack.stack.compose.names import PROJECT, SERVICE
from racetrack.stack.compose.project import HARNESS, MEMORY, STARTED_BY
from racetrack.stack.contract import Unmeasurable

LOOK_EVERY_S = 0.01
ALIVE = ("running", "paused")
# A `docker` program for containers of one project. Services in the file `fail` end at once.
DOCKER = f"""#!{sys.executable}
import json, pathlib, sys
words, here = sys.argv[1:], pathlib.Path(__file__).parent
found = sorted(here.glob("*.state"))
if "config" in words:
    print((here / "services.json").read_text())
elif "up" in words:
    fail = (here / "fail").read_text().split()
    wanted = words[words.index("--wait-timeout") + 2 :]
    for name in wanted:
        (here / f"{{name}}.log").write_text(f"{{name}} has begun\\n")
        ending = ["exited", 3] if name in fail else ["running", 0]
        (here / f"{{name}}.state").write_text(json.dumps(ending))
    sys.exit(any(name in fail for name in wanted))
elif "down" in words or words[0] == "rm":
    for file in found:
        file.unlink()
elif words[0] == "ps":
    for file in found:
        print(file.stem, file.stem)
"""


class FakeContainers:
    """Fake containers of one project, as a client of Docker sees them; an id is a name."""

    def __init__(self, folder: Path, project: str, services: Sequence[str]) -> None:
        self._folder, self._project = folder, project
        described = {"image": "some/image:1", "labels": {MEMORY: "1m"}}
        (folder / "services.json").write_text(
            json.dumps({"services": dict.fromkeys(services, described)})
        )
        self.failing()
        (folder / "docker").write_text(DOCKER)
        (folder / "docker").chmod(0o755)
        self.api = self.images = self

    def engine(self) -> engine.Docker:
        """Return an engine whose containers can't be measured."""
        client = cast(docker.DockerClient, self)
        return engine.Docker(client, "99.1.2", "2.39.1", 24 << 30, Unmeasurable("It is", "Go"))

    def failing(self, *names: str) -> None:
        """Let these containers end as soon as they are started, and no others."""
        (self._folder / "fail").write_text(" ".join(names))

    def state(self, name: str) -> str:
        """Return the state of a container; "" if there is none."""
        file = self._folder / f"{name}.state"
        return str(json.loads(file.read_text())[0]) if file.exists() else ""

    def change(self, name: str, state: str, code: int = 0) -> None:
        """Change the state of a container; `code` is its exit code."""
        new = self._folder / f"{name}.new"
        new.write_text(json.dumps([state, code]))
        new.rename(self._folder / f"{name}.state")

    # What follows is what the harness calls.

    def containers(self, **_: object) -> list[dict[str, Any]]:
        labels = {PROJECT: self._project, STARTED_BY: HARNESS}
        healthy = {"running": "Up 1 second (healthy)"}
        states = {file.stem: self.state(file.stem) for file in self._folder.glob("*.state")}
        return [
            {
                "Id": name,
                "Labels": {**labels, SERVICE: name},
                "State": state,
                "Status": healthy.get(state, ""),
            }
            for name, state in states.items()
        ]

    def networks(self, **_: object) -> list[object]:
        return []

    def volumes(self, **_: object) -> Mapping[str, list[object]]:
        return {"Volumes": []}

    def inspect_container(self, name: str) -> dict[str, Any]:
        file = self._folder / f"{name}.state"
        if not file.exists():
            raise NotFound(name)
        state, code = json.loads(file.read_text())
        return {
            "Image": "sha256:1",
            "Config": {"Image": "some/image:1"},
            "HostConfig": {"Memory": 0},
            "State": {"Status": state, "ExitCode": code, "Running": state in ALIVE},
        }

    def get(self, _image: str) -> Image:
        return Image(attrs={"Id": "sha256:1", "Config": {}})

    def logs(self, name: str, **_: object) -> Iterator[bytes]:
        yield (self._folder / f"{name}.log").read_bytes()
        while self.state(name) in ALIVE:
            time.sleep(LOOK_EVERY_S)

    def kill(self, name: str) -> None:
        self.change(name, "exited", 137)

    def wait(self, name: str) -> None: ...

    def pause(self, name: str) -> None:
        self.change(name, "paused")

    def start(self, name: str) -> None:
        self.change(name, "running")

    unpause = start
