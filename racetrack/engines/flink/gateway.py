"""Client of Flink's SQL gateway (REST), which runs statements and reports why one failed."""

import re
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

import httpx

from racetrack.engines.contract import DemoError

ASK_EVERY_S = 0.02
# Generous, because planning eighteen views on two busy cores takes long.
STATEMENT_WITHIN_S = 300.0
SHOWN_LINES = 12
_CAUSE = re.compile(
    r"^Caused by: (?:[\w$]+\.)*([\w$]+(?:: .*(?:\n(?!\tat |Caused by: ).*)*)?)", re.M
)


class Gateway:
    """A session on a gateway. Tables exist as long as the session; jobs continue after its end."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=f"{url}/v3", timeout=STATEMENT_WITHIN_S, trust_env=False)
        self._session = self._ask("POST", "/sessions", {})["sessionHandle"]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        """Close the connection but not the session, since classes that its job needs would be
        unloaded with the session."""
        self._http.close()

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
        asked = f"/sessions/{self._session}/statements"
        operation = self._ask("POST", asked, {"statement": statement})["operationHandle"]
        result = f"/sessions/{self._session}/operations/{operation}/result/0"
        give_up = time.monotonic() + STATEMENT_WITHIN_S
        while (answer := self._ask("GET", result))["resultType"] != "EOS":
            if time.monotonic() > give_up:
                raise Refused(f"no result within {STATEMENT_WITHIN_S:.0f} s")
            if answer["resultType"] == "NOT_READY":
                time.sleep(ASK_EVERY_S)
            else:
                result = answer["nextResultUri"].removeprefix("/v3")

    def _ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        try:
            answer = self._http.request(method, path, json=body)
        except httpx.HTTPError as error:
            raise Refused(f"the SQL gateway does not answer: {error}") from error
        if answer.status_code != httpx.codes.OK:
            raise Refused(root_cause(answer.text if not _is_errors(answer) else _errors(answer)))
        found: dict[str, Any] = answer.json()
        return found


class Refused(Exception):
    """The gateway refused a request; the message is the root cause."""


def root_cause(trace: str) -> str:
    """Return the innermost cause in a Java stack trace, without package name and stack frames."""
    causes: list[str] = _CAUSE.findall(trace)
    return causes[-1].strip() if causes else trace.partition("\n\tat ")[0].strip()


def _is_errors(answer: httpx.Response) -> bool:
    return str(answer.headers.get("content-type", "")).startswith("application/json")


def _errors(answer: httpx.Response) -> str:
    """Return the errors in the gateway's answer: usually a general line, then a stack trace."""
    return "\n".join(map(str, answer.json().get("errors", [answer.text])))


def _shown(statement: str) -> str:
    lines = statement.splitlines()
    more = [f"… ({len(lines) - SHOWN_LINES} more lines)"] if len(lines) > SHOWN_LINES else []
    return "\n".join(f"    {line}" for line in lines[:SHOWN_LINES] + more)
