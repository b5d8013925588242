"""Clients for engines that speak PostgreSQL's protocol: scripts by psql, queries, and streams of
rows."""

import select
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import ConnStatus, ExecStatus
from psycopg.pq.abc import PGconn, PGresult

from racetrack import environment
from racetrack.engines.contract import DemoError, NoSuchView
from racetrack.errors import RacetrackError, UsageError
from racetrack.stack.processes import mark_command

if TYPE_CHECKING:
    import pyarrow

CONNECT_WITHIN_S = 10
LOAD_WITHIN_S = 300.0
LOOK_EVERY_S = 0.05

# Arrow types of PostgreSQL's types; columns of other types become text. The scale of a decimal is
# the largest number of digits after the point among its values.
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
            found = psycopg.connect(
                self.conninfo,
                autocommit=True,
                prepare_threshold=None,
                password=self.password or None,
            )
            if self.schema:
                found.execute(f"SET search_path = {self.schema}".encode())
        except psycopg.Error as error:
            raise RacetrackError(f"{self} can't be connected to: {error}") from error
        return closing(found)

    def execute(self, statement: str) -> list[Any]:
        """Execute a statement; return its rows, or an empty list if it is not a query.

        Raises:
            RacetrackError: the statement failed, or the server can't be connected to.
        """
        with self.connect() as connection:
            cursor = self._ask(connection, statement)
            return cursor.fetchall() if cursor.description else []

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
            script,
                and the server's error.
        """
        argv = ["psql", "-X", "-q", "-b", "-v", "ON_ERROR_STOP=1", "-d", self.conninfo]
        argv += [arg for name, value in variables.items() for arg in ("-v", f"{name}={value}")]
        argv += [arg for statement in before for arg in ("-c", statement)]
        shown = Path(script.parent.name, script.name)
        password = {"PGPASSWORD": self.password} if self.password else {}
        try:
            ended = subprocess.run(
                [*argv, "-f", str(shown)],
                cwd=script.parent.parent,  # so that psql's messages name the script by a short path
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
    def reader(self, made: Collection[str]) -> "Iterator[SqlReader]":
        """Open a client with its own connection. `made` contains the names of the demo's views.

        Raises:
            RacetrackError: the server can't be connected to.
        """
        with self.connect() as connection:
            yield SqlReader(partial(self._table, connection), made)

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

    def rows(self, view: str, key: str, among: Sequence[int]) -> "pyarrow.Table":
        """Return the rows of a view by a SELECT, with 64-bit integers, exact decimals, and times in
        UTC."""
        if view not in self.made:
            raise NoSuchView(f"There is no view {view!r}.")
        where = f" WHERE {key} IN ({', '.join(map(str, among))})" if key else ""
        return self.table(f"SELECT * FROM {view}{where}")  # noqa: S608  # names of the catalogue


class Poll:
    """A query that is repeated every `every_s` seconds, without blocking. `take` returns the
    answers that have arrived, as rows of text. The query is not sent again before it has been
    answered.
    """

    def __init__(self, connection: "psycopg.Connection[Any]", query: str, every_s: float) -> None:
        self._wire, self._query, self._every_s = connection.pgconn, query, every_s
        self._due_s = time.monotonic()
        self._asked = False

    @property
    def socket(self) -> int:
        """File descriptor that is readable when `take` has data."""
        return self._wire.socket

    def take(self) -> Iterator[list[str | None]]:
        """Yield the rows of the answer, if it has arrived. Send the query again if it is due.

        Raises:
            RacetrackError: the query failed, or the connection ended.
        """
        if self._asked:
            _read(self._wire)
            if self._wire.is_busy():
                return
            self._asked = False
            for result in _results(self._wire):
                yield from _rows(result)
        if time.monotonic() >= self._due_s:
            _ask(self._wire, self._query)
            self._asked = True
            self._due_s = max(self._due_s + self._every_s, time.monotonic())


class CopyOut:
    """An endless `COPY … TO STDOUT`. `take` returns the lines that have arrived."""

    def __init__(self, connection: "psycopg.Connection[Any]", statement: str) -> None:
        self._wire = connection.pgconn
        self._began = False
        _ask(self._wire, statement)

    @property
    def socket(self) -> int:
        """File descriptor that is readable when `take` has data."""
        return self._wire.socket

    def take(self) -> Iterator[str]:
        """Yield the complete lines that have arrived, without line ends.

        Raises:
            RacetrackError: the server refused or ended the statement, or the connection ended.
        """
        _read(self._wire)
        if not self._began:
            if self._wire.is_busy():
                return
            _must_be(self._wire.get_result(), ExecStatus.COPY_OUT)
            self._began = True
        while (line := self._wire.get_copy_data(1))[0] > 0:
            yield bytes(line[1]).decode().rstrip("\n")
        if line[0] < 0:
            for result in _results(self._wire):
                _must_be(result, ExecStatus.COMMAND_OK)  # reports the server's error, if any
            raise RacetrackError("The server ended a COPY that should never end.")


def wait_for(sockets: Sequence[int]) -> None:
    """Wait until one of the sockets is readable, at most LOOK_EVERY_S."""
    select.select(sockets, [], [], LOOK_EVERY_S)


def _ask(wire: PGconn, statement: str) -> None:
    wire.send_query(statement.encode())
    while wire.flush():
        select.select([], [wire.socket], [], LOOK_EVERY_S)


def _read(wire: PGconn) -> None:
    try:
        wire.consume_input()
    except psycopg.OperationalError as error:
        raise RacetrackError(f"The connection ended: {error}") from error
    if wire.status == ConnStatus.BAD:
        raise RacetrackError("The connection ended.")


def _results(wire: PGconn) -> Iterator[PGresult]:
    while (result := wire.get_result()) is not None:
        yield result


def _rows(result: PGresult) -> Iterator[list[str | None]]:
    _must_be(result, ExecStatus.TUPLES_OK)
    for row in range(result.ntuples):
        values = (result.get_value(row, column) for column in range(result.nfields))
        yield [None if value is None else value.decode() for value in values]


def _must_be(result: PGresult | None, status: ExecStatus) -> None:
    if result is None or result.status != status:
        answer = b"" if result is None else result.error_message
        raise RacetrackError(f"The server answered: {answer.decode().strip() or 'nothing'}")


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
