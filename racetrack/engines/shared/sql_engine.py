"""Base class of engines whose script runs in psql, and whose views are read over PostgreSQL's
protocol."""

import re
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from racetrack.config import Settings
from racetrack.engines.contract import Access, Engine, Reader
from racetrack.engines.shared.own_schema import OwnSchema
from racetrack.engines.shared.pgwire import Server
from racetrack.stack.contract import Stack


class SqlEngine(Engine):
    """See `racetrack.engines.contract.Engine`. In a server that the user provides (it runs
    "elsewhere"), the demo's objects are in a schema of their own."""

    elsewhere: OwnSchema
    # Regular expression for the kinds of created objects that can be queried, such as `VIEW`.
    makes: str
    # True if the engine uses an index of a joined view for `key = 1`, but not for `key IN (1, 2)`.
    one_key_at_a_time = False

    def __init__(self, script: Path | None = None) -> None:
        """Create the engine. If `script` is given, it replaces the workload's script."""
        self._script = script

    def script(self, settings: Settings) -> Path:
        """Return the workload's script, or the one that replaces it."""
        return self._script or super().script(settings)

    @abstractmethod
    def server_here(self, settings: Settings) -> Server:
        """Return the address of the server in the stack."""

    def server(self, settings: Settings) -> Server:
        """Return the address of the server, in the stack or elsewhere."""
        if self.runs_elsewhere(settings):
            return self.elsewhere.server(settings)
        return self.server_here(settings)

    def demo(self, settings: Settings) -> Server:
        """Return the address of the server, with the demo's schema as the search path."""
        return replace(self.server(settings), schema=self.namespace(settings))

    def run_script(self, server: Server, settings: Settings, variables: Mapping[str, str]) -> None:
        """Run the script in psql; if the server runs elsewhere, in a new schema."""
        before = self.elsewhere.statements_before() if self.runs_elsewhere(settings) else ()
        server.run_script(self.script(settings), settings.stack_name, variables, before)

    def reader(self, access: Access) -> AbstractContextManager[Reader]:
        """Open a connection for queries of the views that the script creates."""
        server = replace(self.server(access.settings), schema=access.namespace)
        text = self.script(access.settings).read_text()
        made = re.findall(rf"^CREATE (?:{self.makes}) (\w+)", text, re.M)
        return server.reader(made, one_key_at_a_time=self.one_key_at_a_time)

    def remarks(self, stack: Stack) -> list[str]:
        """If the server runs elsewhere, return the schema of the demo's objects, and schemas that
        earlier runs may have left."""
        settings = stack.settings
        return self.elsewhere.remarks(settings) if self.runs_elsewhere(settings) else []
