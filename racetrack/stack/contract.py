"""What a runtime offers to the rest of the harness, whatever it starts its services with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from racetrack.settings import Settings


@dataclass(frozen=True)
class Endpoints:
    """Where the harness reaches the services: `host:port` pairs and URLs as seen from this machine."""

    kafka: str
    schema_registry_url: str
    mysql_host: str
    mysql_port: int
    loadgen_host: str
    loadgen_port: int


class Stack(Protocol):
    """The services of one run. Service names are the same in every runtime:
    `mysql`, `broker`, `registry`, `debezium`, `loadgen`, and each engine's own."""

    runtime: str
    settings: Settings
    endpoints: Endpoints

    def start(self, services: Sequence[str], say: Callable[[str], None]) -> None:
        """Start the services side by side and return when each has passed its health check.

        Raises:
            RacetrackError: a service did not come up; the message ends with its last words.
        """

    def pids(self, service: str) -> list[int]:
        """All live processes of a service, its main process first."""

    def log_of(self, service: str) -> Path:
        """The file that the service's standard output goes to, growing while it runs."""

    def died(self) -> Mapping[str, str]:
        """Services that ended though nobody asked them to: name → how (exit code and last words)."""

    def versions(self) -> Mapping[str, str]:
        """The version of every part that was started, as the part itself or its archive says."""

    def stop(self, say: Callable[[str], None]) -> None:
        """End everything that was started and remove its data. Idempotent."""
