"""Start of containers: waits until all are healthy, copies their logs, and reports failures."""

import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

import docker

from racetrack.clock import attempts
from racetrack.stack.compose.containers import Container, Containers
from racetrack.stack.compose.project import output_of, tail
from racetrack.stack.containers import shown
from racetrack.stack.contract import Say
from racetrack.stack.supervisor import ServiceError, with_log

READY_WITHIN_S = 180.0
LOOK_EVERY_S = 0.25
ENDED = ("exited", "dead")
FOLLOWER_ENDS_WITHIN_S = 5.0
LOG_TAIL_WITHIN_S = 0.5


class Followers:
    """Threads that copy the output of containers while it is written.

    Each container has a log file of its own; the file `whole` gets the output of all containers.
    """

    def __init__(self, client: docker.DockerClient, whole: Path) -> None:
        self._client = client
        self._whole: TextIO = whole.open("a", encoding="utf-8", buffering=1)
        self._lock = threading.Lock()
        self._threads: dict[str, threading.Thread] = {}  # by container id

    def follow(self, container_id: str, service: str, log: Path, since_s: float = 0.0) -> None:
        """Append to `log` the output of a container from `since_s` (epoch) on."""
        thread = threading.Thread(
            target=self._copy, args=(container_id, service, log, since_s), daemon=True
        )
        thread.start()
        self._threads[container_id] = thread

    def drain(self, container_id: str) -> None:
        """Wait briefly for the remaining output of a container that has ended."""
        self._threads[container_id].join(LOG_TAIL_WITHIN_S)

    def close(self) -> None:
        """Wait for the remaining output; the containers have ended."""
        for thread in self._threads.values():
            thread.join(FOLLOWER_ENDS_WITHIN_S)
        with self._lock:
            self._whole.close()

    def _copy(self, container_id: str, service: str, log: Path, since_s: float) -> None:
        rest = b""
        with log.open("ab", buffering=0) as file:
            try:
                output = self._client.api.logs(
                    container_id, stream=True, follow=True, since=since_s or None
                )
                for chunk in output:
                    file.write(chunk)
                    *lines, rest = (rest + chunk).split(b"\n")
                    self._keep(service, lines)
            except Exception as error:  # noqa: BLE001  # docker, requests and urllib3 each raise their own
                # The container or the engine is gone: record the reason in the log.
                file.write(f"[racetrack] the log ends here: {error}\n".encode())
        self._keep(service, [rest] if rest else [])

    def _keep(self, service: str, lines: list[bytes]) -> None:
        text = "".join(
            f"{service:<12}| {line.decode(errors='replace').rstrip(chr(13))}\n" for line in lines
        )
        with self._lock:
            if not self._whole.closed:
                self._whole.write(text)


class Startup:
    """Containers that are being started, by their names in docker-compose.yml."""

    def __init__(self, containers: Containers, followers: Followers, logs: Path) -> None:
        self._containers, self._followers, self._logs = containers, followers, logs
        self.ids: dict[str, str] = {}  # name → container id of the started containers

    def wait(self, up: "subprocess.Popen[str]", wanted: Sequence[str], say: Say) -> None:
        """Wait until all containers are healthy; `up` is the `docker compose up` that starts them.

        Raises:
            ServiceError: a container ended, is unhealthy, or was not healthy in time.
        """
        began = time.monotonic()
        ready: set[str] = set()
        while True:
            ended = _ends_within(up, LOOK_EVERY_S)
            found = self._look(wanted)
            for name in sorted(_healthy(found) - ready):
                say(f"  {shown(name)} ready after {time.monotonic() - began:.1f} s")
            ready |= _healthy(found)
            self._raise_failed(found)
            if ended:
                break
        if missing := [name for name in wanted if name not in ready]:
            raise self._unfinished(up, missing)

    def wait_again(self, name: str, since_s: float) -> None:
        """Wait until a container that was restarted at `since_s` (epoch) is healthy.

        Raises:
            ServiceError: the container did not become healthy.
        """
        self._follow(name, self.ids[name], since_s)
        for _ in attempts(READY_WITHIN_S, LOOK_EVERY_S):
            if name in _healthy(found := self._look([name])):
                return
            self._raise_failed(found)
        raise self._too_late(name)

    def with_log(self, name: str, what: str) -> str:
        """Return what happened to a container, and the end of its log."""
        self._followers.drain(self.ids[name])
        return with_log(what, self._log(name))

    def _look(self, wanted: Sequence[str]) -> dict[str, Container]:
        """Return the wanted containers that exist, and begin to copy their output."""
        found = {each.service: each for each in self._containers.all() if each.service in wanted}
        for name, container in found.items():
            if name not in self.ids and container.state != "created":
                self.ids[name] = container.id
                self._follow(name, container.id)
        return found

    def _log(self, name: str) -> Path:
        return self._logs / f"{shown(name)}.log"

    def _follow(self, name: str, container_id: str, since_s: float = 0.0) -> None:
        self._followers.follow(container_id, shown(name), self._log(name), since_s)

    def _raise_failed(self, found: Mapping[str, Container]) -> None:
        for name, container in found.items():
            if container.state in ENDED:
                why = f"did not start: {self._containers.ending(container.id)}"
            elif container.is_unhealthy:
                why = f"is unhealthy: {self._containers.why_not_healthy(container.id)}"
            else:
                continue
            raise ServiceError(self.with_log(name, f"{shown(name)} {why}"))

    def _unfinished(self, up: "subprocess.Popen[str]", missing: Sequence[str]) -> ServiceError:
        """Return the error for containers that `docker compose up` did not make ready."""
        output = tail(output_of(up))
        if up.returncode == 0:
            return ServiceError(f"{', '.join(missing)}: no health check in docker-compose.yml.")
        started = [name for name in missing if name in self.ids]
        if not started:
            return ServiceError(f"Docker did not start {', '.join(missing)}:\n{output}")
        return self._too_late(started[0])

    def _too_late(self, name: str) -> ServiceError:
        why = self._containers.why_not_healthy(self.ids[name])
        late = f"{shown(name)} was not ready within {READY_WITHIN_S:.0f} s: {why}"
        return ServiceError(self.with_log(name, late))


def _healthy(found: Mapping[str, Container]) -> set[str]:
    return {name for name, container in found.items() if container.is_healthy}


def _ends_within(process: "subprocess.Popen[str]", seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True
