"""Address of a MySQL server, and how all clients connect to it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pymysql

WITHIN_S = 10


@dataclass(frozen=True)
class MysqlEndpoint:
    """A MySQL server and the database of a run in it. As text, it is the address only.

    The writer may do everything in the database. The reader, Debezium, may read the database and
    the binary log.
    """

    host: str
    port: int
    database: str
    writer: str
    writer_password: str = field(repr=False)
    reader: str
    reader_password: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def connect(self, within_s: int = WITHIN_S) -> "pymysql.Connection[Any]":
        """Connect as the writer, in the database.

        Raises:
            pymysql.MySQLError: MySQL does not answer within `within_s` seconds, or refuses.
        """
        return self._connect(self.writer, self.writer_password, self.database, within_s)

    def connect_reader(self, within_s: int = WITHIN_S) -> "pymysql.Connection[Any]":
        """Connect as the reader, in no database.

        Raises:
            pymysql.MySQLError: as `connect`.
        """
        return self._connect(self.reader, self.reader_password, None, within_s)

    def _connect(
        self, user: str, password: str, database: str | None, within_s: int
    ) -> "pymysql.Connection[Any]":
        import pymysql  # imported late, since most commands need no database

        return pymysql.connect(
            host=self.host,
            port=self.port,
            user=user,
            password=password,
            database=database,
            connect_timeout=within_s,
            read_timeout=within_s,
            # Times of rows are in UTC, whatever the server's time zone.
            init_command="SET time_zone = '+00:00'",
        )


def words(error: Exception) -> str:
    """Return MySQL's message of an error, without its number."""
    return str(error.args[-1]) if error.args else type(error).__name__
