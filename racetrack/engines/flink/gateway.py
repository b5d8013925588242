"""Client of Flink's SQL gateway (REST), which runs statements and reports why one failed."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from racetrack.clock import attempts
from racetrack.engines.contract import DemoError
from racetrack.stack import net
from racetrack.stack.service import NotReady

ASK_EVERY_S = 0.02
# Generous, because planning eighteen views on two busy cores takes long.
STATEMENT_WITHIN_S = 300.0
CLOSED_WITHIN_S = 10.0
SHOWN_LINES = 12
OK = 200
_CAUSE = re.compile(
    r"^Caused by: (?:[\w$]+\.)*([\w$]+(?:: .*(?:\n(?!\tat |Caused by: ).*)*)?)", re.M
)


@dataclass(frozen=True)
class Job:
    """A job of the gateway's cluster."""

    id: str
    name: str
    status: str  # such as RUNNING
    began_at: str  # in ISO format


class Gateway:
    """A session on a gateway. Tables exist as long as the session; jobs continue after its end.

    The session does not end by itself. If the job runs in the gateway's process, the session must
    not be closed, since classes that the job needs would be unloaded with it.
    """

    def __init__(self, url: str, within_s: float = STATEMENT_WITHIN_S) -> None:
        """Open the session; a statement may take `within_s`.

        Raises:
            Refused: the gateway opens no session.
        """
        self._url, self._within_s = f"{url}/v3", within_s
        self._session = self._ask("POST", "/sessions", {})["sessionHandle"]

    def close(self) -> None:
        """End the session. A statement that is being planned may continue."""
        self._within_s = min(self._within_s, CLOSED_WITHIN_S)
        with suppress(Refused):
            self._ask("DELETE", f"/sessions/{self._session}")

    def jobs(self) -> list[Job]:
        """Return all jobs of the cluster, including those that have ended.

        Raises:
            Refused: the gateway has no cluster, or does not answer.
        """
        return [Job(*map(str, row[:4])) for row in self.run("SHOW JOBS")]

    def version(self) -> str:
        """Return Flink's version."""
        return str(self._ask("GET", "/info")["version"])

    def properties(self) -> dict[str, str]:
        """Return the session's configuration where it differs from Flink's defaults."""
        properties: dict[str, str] = self._ask("GET", f"/sessions/{self._session}")["properties"]
        return properties

    def run_all(self, statements: Iterable[str]) -> None:
        """Run the statements in order.

        Raises:
            DemoError: a statement was refused. The message contains the statement and the root
            cause.
        """
        for statement in statements:
            try:
                self.run(statement)
            except Refused as refused:
                raise DemoError(
                    f"Flink refused a statement: {refused}\nThe statement:\n{_shown(statement)}"
                ) from refused

    def run(self, statement: str) -> list[list[Any]]:
        """Run one statement; return the rows of its result. For a job, wait until the job is
        submitted.

        Raises:
            Refused: the statement failed; the message is the root cause.
        """
        path = f"/sessions/{self._session}/statements"
        operation = self._ask("POST", path, {"statement": statement})["operationHandle"]
        result = f"/sessions/{self._session}/operations/{operation}/result/0"
        rows: list[list[Any]] = []
        for _ in attempts(self._within_s, ASK_EVERY_S):
            while (answer := self._ask("GET", result))["resultType"] == "PAYLOAD":
                rows += [row["fields"] for row in answer.get("results", {}).get("data", ())]
                result = answer["nextResultUri"].removeprefix("/v3")
            if answer["resultType"] == "EOS":
                return rows
        raise Refused(f"no result within {self._within_s:.0f} s")

    def _ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        try:
            status, content = net.request(f"{self._url}{path}", method, body, self._within_s)
        except NotReady as error:
            raise Refused(f"the SQL gateway does not answer: {error}") from error
        if status != OK:
            raise Refused(root_cause(_errors(content.decode(errors="replace"))))
        try:
            answer: dict[str, Any] = json.loads(content)
        except ValueError:
            raise Refused("the answer is not that of a SQL gateway") from None
        return answer


@contextmanager
def opened(url: str, within_s: float = STATEMENT_WITHIN_S) -> Iterator[Gateway]:
    """Open a session, and close it at the end; see `Gateway`.

    Raises:
        Refused: the gateway opens no session.
    """
    gateway = Gateway(url, within_s)
    try:
        yield gateway
    finally:
        gateway.close()


class Refused(Exception):
    """The gateway refused a request; the message is the root cause."""


def root_cause(trace: str) -> str:
    """Return the innermost cause in a Java stack trace, without package name and stack frames."""
    causes: list[str] = _CAUSE.findall(trace)
    return causes[-1].strip() if causes else trace.partition("\n\tat ")[0].strip()


def _errors(content: str) -> str:
    """Return the errors in the gateway's answer, usually a general line and then a stack trace. An
    answer that is not JSON is returned unchanged."""
    try:
        return "\n".join(map(str, json.loads(content).get("errors", [content])))
    except ValueError:
        return content


def _shown(statement: str) -> str:
    lines = statement.splitlines()
    more = [f"… ({len(lines) - SHOWN_LINES} more lines)"] if len(lines) > SHOWN_LINES else []
    return "\n".join(f"    {line}" for line in lines[:SHOWN_LINES] + more)
