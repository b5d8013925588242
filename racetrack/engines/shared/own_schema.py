"""A server that the user provides and that speaks PostgreSQL's protocol. Each run creates its
objects in a schema of its own there, and drops the schema at the end."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import SecretStr

from racetrack.config import Settings
from racetrack.errors import RacetrackError
from racetrack.stack.elsewhere import RUN_NAME, Failure, Passed, measure_clock, refused

if TYPE_CHECKING:
    from racetrack.engines.shared.pgwire import Server

CHECK = f"{RUN_NAME}_check"
STEPS = {
    "log in": "SELECT 1",
    "create a schema": f"CREATE SCHEMA {CHECK}",
    "create tables": f"CREATE TABLE {CHECK}.tried (number int)",
    "remove the schema": f"DROP SCHEMA {CHECK} CASCADE",
}
NOW_MS = "SELECT extract(epoch FROM now()) * 1000"
SCHEMAS = "SELECT nspname FROM pg_catalog.pg_namespace WHERE nspname ~ '^racetrack_'"
DROP_WITHIN_S = 10
FORBIDDEN = "42501"  # insufficient_privilege


@dataclass(frozen=True)
class OwnSchema:
    """See `racetrack.stack.elsewhere.Elsewhere`."""

    service: str
    title: str
    setting: str  # name of the setting with the server's URL
    starts_here: bool = False

    def address(self, settings: Settings) -> str:
        """Return `host:port/database`."""
        url = urlsplit(self._url(settings))
        port = f":{url.port}" if url.port else ""
        return f"{url.hostname}{port}{url.path}" if url.hostname else ""

    def server(self, settings: Settings) -> "Server":
        """Return the server at the URL in the setting, with no schema selected."""
        # Imported only here, because every run imports this module, but few need psycopg.
        from racetrack.engines.shared.pgwire import Server

        return Server.at(self._url(settings), self.setting)

    def _url(self, settings: Settings) -> str:
        url: SecretStr = getattr(settings, self.setting.lower())
        return url.get_secret_value()

    def check(self, settings: Settings) -> Passed:
        """Log in, create a table in a new schema, and drop the schema."""
        server = self.server(settings)
        passed = []
        for what, statement in STEPS.items():
            try:
                server.execute(statement)
            except RacetrackError as error:
                with suppress(RacetrackError):
                    server.execute(f"DROP SCHEMA IF EXISTS {CHECK} CASCADE")
                why = self._failure(what, error)
                raise refused(self.title, self.address(settings), [why]) from error
            passed.append(what)
        with server.connect() as connection:

            def read_ms() -> float:
                ((now_ms,),) = connection.execute(NOW_MS.encode()).fetchall()
                return float(now_ms)

            clock = measure_clock(self.title, read_ms)
        return Passed(tuple(passed), clock)

    def _failure(self, what: str, error: RacetrackError) -> Failure:
        cause = error.__cause__
        answer = f"can't {what}: {' '.join(str(cause or error).split())}"
        if getattr(cause, "sqlstate", None) == FORBIDDEN:
            return Failure(self.setting, answer, "As its owner: GRANT CREATE ON DATABASE … TO …")
        remedy = (
            "Check host, port, database, user, password and sslmode in it, and that the server"
            " accepts connections from this machine"
        )
        return Failure(self.setting, answer, remedy)

    def statements_before(self) -> Sequence[str]:
        """Return statements to run before the script: create the schema, and use it."""
        return (f"CREATE SCHEMA {RUN_NAME}", f"SET search_path = {RUN_NAME}")

    def remove(self, settings: Settings, run_name: str) -> Sequence[str]:
        """Drop the schema with all that it contains."""
        if not run_name:
            return ()
        server, drop = self.server(settings), f"DROP SCHEMA {run_name} CASCADE"
        try:
            if (run_name,) not in server.execute(SCHEMAS):
                return ()
            server.with_option(f"-clock_timeout={DROP_WITHIN_S}s").execute(drop)
        except RacetrackError as error:
            return (f"not removed from {server}: {error}\n  Remove it yourself: {drop};",)
        return (f"removed the schema {run_name} from {server}",)

    def remarks(self, settings: Settings) -> list[str]:
        """Return where the run's objects are, and which schemas earlier runs may have left."""
        server = self.server(settings)
        schemas = sorted(row[0] for row in server.execute(SCHEMAS))
        return [
            f"its objects are in the schema {RUN_NAME} at {server}, which will be dropped",
            *(
                f"there is also {schema}, of another run. If that run was killed, remove it:"
                f" DROP SCHEMA {schema} CASCADE;"
                for schema in schemas
                if schema != RUN_NAME
            ),
        ]
