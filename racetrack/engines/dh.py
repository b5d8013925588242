"""Deephaven: the demo is loaded over gRPC, progress is read from the server's own output."""

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from racetrack.engines.contract import DemoError, Engine, Progress, Summary
from racetrack.engines.told import updates_told
from racetrack.settings import Settings
from racetrack.stack.contract import Stack

if TYPE_CHECKING:
    from pydeephaven import Session

_PSK_HANDLER = "io.deephaven.authentication.psk.PskAuthenticationHandler"
# By its path, as the server sees it: then an error names file and line, and the server's log is
# spared the whole text.
_RUN_FILE = """
import os
path = os.path.join(os.environ.get("RACETRACK_SCRIPTS", "/scripts"), {name!r})
exec(compile(open(path).read(), path, "exec"))
"""


class Deephaven(Engine):
    """See `racetrack.engines.contract.Engine`."""

    name = "dh"
    title = "Deephaven"
    needs = ("registry", "debezium")
    services = ("deephaven",)

    def load_demo(self, stack: Stack) -> None:
        """Run `scripts/demo.py`, then `scripts/sample_dt.py`, which makes the server tell."""
        from pydeephaven import DHError

        session = connect(stack.settings)
        try:
            for script in ("demo.py", "sample_dt.py"):
                try:
                    session.run_script(_RUN_FILE.format(name=script))
                except DHError as error:
                    raise DemoError(f"Deephaven refused scripts/{script}:\n{error}") from error
        finally:
            session.close()

    def updates(self, stack: Stack, stop: threading.Event) -> Iterator[Summary | Progress]:
        """What `sample_dt.py` writes to the server's output at every update."""
        return updates_told(stack.log_of("deephaven"), stop)

    def where_to_play(self, stack: Stack) -> list[str]:
        """The IDE's address, and what to paste there."""
        settings = stack.settings
        host = f"{settings.reach_address}:{settings.deephaven_port}"
        psk = settings.deephaven_psk.get_secret_value()
        return [
            f"IDE: http://{host}/ide/?psk={psk}",
            f"In its console: exec(open('{stack.inside.scripts}/demo.py').read())",
        ]


def connect(settings: Settings) -> "Session":
    """A session on the server of these settings; the tables it makes outlive it."""
    from pydeephaven import Session

    return Session(
        host=settings.reach_address,
        port=settings.deephaven_port,
        auth_type=_PSK_HANDLER,
        auth_token=settings.deephaven_psk.get_secret_value(),
    )


ENGINE = Deephaven()
