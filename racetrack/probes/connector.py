"""Watches Debezium's connector and its task: a failed one delivers nothing while Connect lives."""

import time
from collections.abc import Callable

from racetrack.errors import RacetrackError
from racetrack.probes.thread import Probe
from racetrack.stack.service import NotReady
from racetrack.stack.services import debezium

LOOK_EVERY_S = 2.0
# Connect answers late on a busy machine; that is no reason to end a run.
SILENT_FOR_S = 60.0


class ConnectorFailed(RacetrackError):
    """The connector or its task has failed, or somebody stopped it."""


class ConnectorProbe(Probe):
    """Asks Connect for the connector's state every two seconds."""

    name = "The state of Debezium's connector"

    def __init__(
        self,
        connect_url: str,
        connector: str,
        excused: Callable[[float], bool] = lambda _since_s: False,
        silent_for_s: float = SILENT_FOR_S,
    ) -> None:
        """`excused` says whether Debezium is away on purpose, or was since a time."""
        super().__init__()
        self._url, self._connector = connect_url, connector
        self._excused, self._silent_for_s = excused, silent_for_s

    def run(self) -> None:
        """Ask until the connector fails or Connect has been silent for too long."""
        answered_s = time.monotonic()
        while not self.stopping.wait(LOOK_EVERY_S):
            try:
                status = debezium.connector_status(self._url, self._connector)
            except NotReady as why:
                silent_s = time.monotonic() - answered_s
                if silent_s > self._silent_for_s and not self._excused(answered_s):
                    raise RacetrackError(
                        f"Kafka Connect has not reported it for {silent_s:.0f} s: {why}"
                    ) from None
                continue
            answered_s = time.monotonic()
            if status and (failure := status.failure):
                raise ConnectorFailed(f"{failure}\nDebezium's log is stack/debezium.log.")

    def check(self) -> None:
        """Raise what ended the probe, if anything did.

        Raises:
            RacetrackError: says why the connector has failed, or that its state is unknown.
        """
        if isinstance(self._failure, ConnectorFailed):
            raise self._failure
        super().check()
