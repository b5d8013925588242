"""Copies what containers say into files, as they say it: one for each, and one for all."""

import threading
from pathlib import Path
from typing import TextIO

import docker

ENDS_WITHIN_S = 5.0
LAST_WORDS_WITHIN_S = 0.5


class Followers:
    """A thread per container; each ends when its container does."""

    def __init__(self, client: docker.DockerClient, whole: Path) -> None:
        self._client = client
        self._whole: TextIO = whole.open("a", encoding="utf-8", buffering=1)
        self._lock = threading.Lock()
        self._threads: dict[str, threading.Thread] = {}  # by container id

    def follow(self, container_id: str, service: str, log: Path, since_s: float = 0.0) -> None:
        """Append to `log` what a container says from `since_s` (epoch) on."""
        thread = threading.Thread(
            target=self._copy, args=(container_id, service, log, since_s), daemon=True
        )
        thread.start()
        self._threads[container_id] = thread

    def take_in(self, container_id: str) -> None:
        """Take in what a container that has ended still had to say."""
        self._threads[container_id].join(LAST_WORDS_WITHIN_S)

    def close(self) -> None:
        """Take in what is still on its way; the containers have ended."""
        for thread in self._threads.values():
            thread.join(ENDS_WITHIN_S)
        with self._lock:
            self._whole.close()

    def _copy(self, container_id: str, service: str, log: Path, since_s: float) -> None:
        rest = b""
        with log.open("ab", buffering=0) as file:
            try:
                said = self._client.api.logs(
                    container_id, stream=True, follow=True, since=since_s or None
                )
                for chunk in said:
                    file.write(chunk)
                    *lines, rest = (rest + chunk).split(b"\n")
                    self._keep(service, lines)
            except Exception as error:  # noqa: BLE001  # docker, requests, urllib3: each its own
                # The container is gone before all was read, or the engine is: who needs the log
                # finds the reason in it.
                file.write(f"[racetrack] the log ends here: {error}\n".encode())
        self._keep(service, [rest] if rest else [])

    def _keep(self, service: str, lines: list[bytes]) -> None:
        text = "".join(
            f"{service:<12}| {line.decode(errors='replace').rstrip(chr(13))}\n" for line in lines
        )
        with self._lock:
            if not self._whole.closed:
                self._whole.write(text)
