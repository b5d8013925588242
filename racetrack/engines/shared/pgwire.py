"""Clients for engines that speak PostgreSQL's protocol: they run scripts in psql, query, and
receive streams of rows."""

import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from racetrack import environment
from racetrack.engines.contract import DemoError, NoSuchView
from racetrack.errors import RacetrackError, UsageError
from racetrack.stack.processes import mark_command

if TYPE_CHECKING:
    import pyarrow

CONNECT_WITHIN_S = 10
LOAD_WITHIN_S = 300.0

# PostgreSQL's types → Arrow types. Columns of all other types become text. A decimal column gets as
# many digits after the point as the longest of its values has.
_DECIMAL = "decimal"
_ARROW = {
    **dict.fromkeys((20, 21, 23), "int64"),
    **dict.fromkeys((700, 701), "float64"),
    16: "bool",
    1114: "timestamp[us]",
    1184: "timestamp[us, UTC]",
    1700: _DECIMAL,
}


@dataclass(frozen=True)
class Server:
    """Address of a server, with user and password. The password never appears in messages."""

    conninfo: str  # libpq's connection string, without the password
    password: str = field(default="", repr=False)
    schema: str = ""  # schema in which names are looked up; empty: the server's default

    @classmethod
    def at(cls, url: str, setting: str) -> "Server":
        """Parse a URL such as `postgres://user:password@host:port/database`.

        Raises:
            UsageError: the URL is invalid. The message names the setting but not the URL, which may
                contain a password.
        """
        try:
            parts = conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            parts = {}
        if not parts.get("host"):
            raise UsageError(f"{setting} is not a URL like postgres://user@host:port/database.")
        password = str(parts.pop("password", None) or "")
        return cls(make_conninfo("", **{"connect_timeout": CONNECT_WITHIN_S, **parts}), password)

    def __str__(self) -> str:
        parts = conninfo_to_dict(self.conninfo)
        database = parts.get("dbname", parts.get("user", ""))
        return f"{parts['host']}:{parts.get('port', 5432)}/{database}"

    def with_option(self, option: str) -> "Server":
        """Return a copy with an additional option for sessions, in the form `--name=value`."""
        parts = conninfo_to_dict(self.conninfo)
        options = f"{parts.get('options') or ''} {option}".strip()
        return replace(self, conninfo=make_conninfo("", **{**parts, "options": options}))

    def connect(self) -> "closing[psycopg.Connection[Any]]":
        """Open a connection in autocommit mode, for use in a `with` statement.

        Raises:
            RacetrackError: the server does not answer, or rejects the login.
        """
        try:
            connection = psycopg.connect(
                self.conninfo,
                autocommit=True,
                prepare_threshold=None,
                password=self.password or None,
            )
            if self.schema:
                connection.execute(f"SET search_path = {self.schema}".encode())
        except psycopg.Error as error:
            raise RacetrackError(f"{self} can't be connected to: {error}") from error
        return closing(connection)

    def execute(self, statement: str) -> list[Any]:
        """Execute a statement; return its rows, or an empty list if it is not a query.

        Raises:
            RacetrackError: the statement failed, or no connection to the server is possible.
        """
        with self.connect() as connection:
            cursor = self._ask(connection, statement)
            return cursor.fetchall() if cursor.description else []

    def poll(self, query: str, every_s: float, stop: threading.Event) -> Iterator[tuple[Any, ...]]:
        """Execute a query every `every_s` seconds until `stop` is set; yield the rows.

        Raises:
            RacetrackError: the query failed, or the connection ended.
        """
        with self.connect() as connection:
            while not stop.is_set():
                next_s = time.monotonic() + every_s
                yield from self._ask(connection, query)
                stop.wait(next_s - time.monotonic())

    def copy(self, statement: str, stop: threading.Event) -> Iterator[tuple[str | None, ...]]:
        """Yield the rows of an endless `COPY … TO STDOUT` as they arrive, until one arrives after
        `stop` was set.

        Raises:
            RacetrackError: the server refused or ended the statement, or the connection ended.
        """
        try:
            with (
                self.connect() as connection,
                connection.cursor() as cursor,
                cursor.copy(statement.encode()) as copy,
            ):
                for row in copy.rows():
                    yield row
                    if stop.is_set():
                        return
        except psycopg.Error as error:
            raise RacetrackError(f"{self} does not answer {statement!r}: {error}") from error
        raise RacetrackError(f"{self} ended a COPY that should never end: {statement!r}")

    def run_script(
        self,
        script: Path,
        stack_name: str,
        variables: Mapping[str, str],
        before: Sequence[str] = (),
    ) -> None:
        """Run the statements `before` and then a script in psql. Stop at the first error. If this
        process is killed, the watchdog of the stack `stack_name` ends psql.

        Raises:
            DemoError: a statement failed. The message contains the statement, its line in the
                script, and the server's error.
        """
        argv = ["psql", "-X", "-q", "-b", "-v", "ON_ERROR_STOP=1", "-d", self.conninfo]
        argv += [arg for name, value in variables.items() for arg in ("-v", f"{name}={value}")]
        argv += [arg for statement in before for arg in ("-c", statement)]
        shown = Path(script.parent.name, script.name)
        password = {"PGPASSWORD": self.password} if self.password else {}
        try:
            ended = subprocess.run(
                [*argv, "-f", str(shown)],
                # So that psql's messages contain only a short path of the script.
                cwd=script.parent.parent,
                env=environment.of_program({**password, **mark_command(stack_name, "psql")}),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LOAD_WITHIN_S,
                check=False,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired as late:
            output = late.stderr.decode(errors="replace") if isinstance(late.stderr, bytes) else ""
            raise DemoError(
                f"{shown} was not loaded within {LOAD_WITHIN_S:.0f} s. Output of psql so far:"
                f"\n{output}"
            ) from late
        if ended.returncode != 0:
            raise DemoError(
                f"{shown} was refused by {self} (psql's exit code {ended.returncode}):\n"
                f"{ended.stderr.strip()}"
            )

    @contextmanager
    def reader(
        self, made: Collection[str], *, one_key_at_a_time: bool = False
    ) -> "Iterator[SqlReader]":
        """Open a client with its own connection. `made` contains the names of the demo's views.

        Raises:
            RacetrackError: no connection to the server is possible.
        """
        with self.connect() as connection:
            yield SqlReader(partial(self._table, connection), made, one_key_at_a_time)

    def _table(self, connection: "psycopg.Connection[Any]", query: str) -> "pyarrow.Table":
        cursor = self._ask(connection, query)
        columns = [(column.name, column.type_code) for column in cursor.description or ()]
        return _arrow(columns, cursor.fetchall())

    def _ask(self, connection: "psycopg.Connection[Any]", query: str) -> "psycopg.Cursor[Any]":
        try:
            return connection.execute(query.encode())
        except psycopg.Error as error:
            raise RacetrackError(f"{self} refused {query!r}: {error}") from error


@dataclass(frozen=True)
class SqlReader:
    """See `racetrack.engines.contract.Reader`. All queries use the same connection."""

    table: "Callable[[str], pyarrow.Table]"
    made: Collection[str]
    one_key_at_a_time: bool

    def rows(self, view: str, key: str, among: Sequence[int]) -> "pyarrow.Table":
        """Return the rows of a view by a SELECT, with 64-bit integers, exact decimals, and times in
        UTC."""
        if view not in self.made:
            raise NoSuchView(f"There is no view {view!r}.")
        if self.one_key_at_a_time and among:
            return self.table(rows_of_keys(view, key, among))
        where = f" WHERE {key} IN ({', '.join(map(str, among))})" if key else ""
        return self.table(f"SELECT * FROM {view}{where}")  # noqa: S608  # names of the catalogue


def rows_of_keys(view: str, key: str, among: Sequence[int]) -> str:
    """Return a query of a view's rows with these keys that evaluates the view for one key after the
    other. `OFFSET 0` prevents PostgreSQL from turning it into a join with the whole view."""
    keys = ", ".join(map(str, among))
    select = f"SELECT * FROM {view} WHERE {key} = given.number"  # noqa: S608  # names of the catalogue
    given = f"unnest(ARRAY[{keys}]) AS given (number)"
    return f"SELECT found.* FROM {given}, LATERAL ({select} OFFSET 0) AS found"  # noqa: S608


def _arrow(columns: Sequence[tuple[str, int]], rows: Sequence[Sequence[Any]]) -> "pyarrow.Table":
    import pyarrow as pa

    arrays = [
        pa.array(values, type=_arrow_type(kind, values))
        for (_, kind), values in zip(
            columns, ([row[at] for row in rows] for at in range(len(columns))), strict=True
        )
    ]
    return pa.table(arrays, names=[name for name, _ in columns])


def _arrow_type(kind: int, values: Sequence[Any]) -> "pyarrow.DataType":
    import pyarrow as pa

    name = _ARROW.get(kind, "string")
    if name == "timestamp[us, UTC]":
        return pa.timestamp("us", tz="UTC")
    if name == _DECIMAL:
        digits = [-int(value.as_tuple().exponent) for value in values if value is not None]
        return pa.decimal128(38, max([0, *digits]))
    return pa.type_for_alias(name)
