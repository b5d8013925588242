"""Client of Flink's SQL gateway (REST), which runs statements and reports why one failed."""

import json
import re
from collections.abc import Iterable
from typing import Any

from racetrack.clock import attempts
from racetrack.engines.contract import DemoError
from racetrack.stack import net
from racetrack.stack.service import NotReady

ASK_EVERY_S = 0.02
# Generous, because planning eighteen views on two busy cores takes long.
STATEMENT_WITHIN_S = 300.0
SHOWN_LINES = 12
OK = 200
_CAUSE = re.compile(
    r"^Caused by: (?:[\w$]+\.)*([\w$]+(?:: .*(?:\n(?!\tat |Caused by: ).*)*)?)", re.M
)


class Gateway:
    """A session on a gateway. Tables exist as long as the session; jobs continue after its end.

    The session is never closed, since classes that its job needs would be unloaded with it.
    """

    def __init__(self, url: str) -> None:
        self._url = f"{url}/v3"
        self._session = self._ask("POST", "/sessions", {})["sessionHandle"]

    def properties(self) -> dict[str, str]:
        """Return the session's configuration where it differs from Flink's defaults."""
        found: dict[str, str] = self._ask("GET", f"/sessions/{self._session}")["properties"]
        return found

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

    def run(self, statement: str) -> None:
        """Run one statement and wait for its result. For a job, wait until the job is submitted.

        Raises:
            Refused: the statement failed; the message is the root cause.
        """
        path = f"/sessions/{self._session}/statements"
        operation = self._ask("POST", path, {"statement": statement})["operationHandle"]
        result = f"/sessions/{self._session}/operations/{operation}/result/0"
        for _ in attempts(STATEMENT_WITHIN_S, ASK_EVERY_S):
            while (answer := self._ask("GET", result))["resultType"] == "PAYLOAD":
                result = answer["nextResultUri"].removeprefix("/v3")
            if answer["resultType"] == "EOS":
                return
        raise Refused(f"no result within {STATEMENT_WITHIN_S:.0f} s")

    def _ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        try:
            status, content = net.request(f"{self._url}{path}", method, body, STATEMENT_WITHIN_S)
        except NotReady as error:
            raise Refused(f"the SQL gateway does not answer: {error}") from error
        if status != OK:
            raise Refused(root_cause(_errors(content.decode(errors="replace"))))
        found: dict[str, Any] = json.loads(content)
        return found


class Refused(Exception):
    """The gateway refused a request; the message is the root cause."""


def root_cause(trace: str) -> str:
    """Return the innermost cause in a Java stack trace, without package name and stack frames."""
    causes: list[str] = _CAUSE.findall(trace)
    return causes[-1].strip() if causes else trace.partition("\n\tat ")[0].strip()


def _errors(content: str) -> str:
    """Return the errors in the gateway's answer, usually a general line and then a stack trace; an
    answer that is not JSON unchanged."""
    try:
        return "\n".join(map(str, json.loads(content).get("errors", [content])))
    except ValueError:
        return content


def _shown(statement: str) -> str:
    lines = statement.splitlines()
    more = [f"… ({len(lines) - SHOWN_LINES} more lines)"] if len(lines) > SHOWN_LINES else []
    return "\n".join(f"    {line}" for line in lines[:SHOWN_LINES] + more)
