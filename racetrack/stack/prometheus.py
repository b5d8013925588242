"""CPU time and memory of services that the user provides, from queries to the user's Prometheus.

The settings of a service's queries have the same prefix as the setting of its address:
POSTGRES_CPU_QUERY and POSTGRES_MEMORY_QUERY belong to POSTGRES_URL.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from racetrack.config import Settings
from racetrack.errors import UsageError
from racetrack.stack import net
from racetrack.stack.elsewhere import Elsewhere, Failure, refused
from racetrack.stack.service import NotReady

OK = 200
ANSWER_WITHIN_S = 3.0
URL, TOKEN = "PROMETHEUS_URL", "PROMETHEUS_TOKEN_FILE"
WHAT = {"cpu": "a counter of CPU seconds", "memory": "bytes of memory"}


class Refused(Exception):
    """Prometheus did not return one number."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


@dataclass(frozen=True)
class Queries:
    """The queries of one service; both return one number."""

    service: str
    cpu: str
    memory: str
    prefix: str  # of the names of the two settings, such as `POSTGRES_`

    def setting(self, what: str) -> str:
        """Return the name of the setting with the query for `what`: `cpu` or `memory`."""
        return f"{self.prefix}{what.upper()}_QUERY"


def queries(service: Elsewhere, settings: Settings) -> Queries | None:
    """Return the queries of a service; None if the settings have none.

    Raises:
        UsageError: only one of the two queries is set, or PROMETHEUS_URL is missing.
    """
    prefix = service.setting.partition("_")[0] + "_"
    cpu, memory = (str(getattr(settings, f"{prefix}{what}_query".lower(), "")) for what in WHAT)
    if not (cpu or memory):
        return None
    found = Queries(service.service, cpu, memory, prefix)
    if not (cpu and memory):
        raise UsageError(f"{found.setting('cpu')} and {found.setting('memory')} need each other.")
    if not settings.prometheus_url:
        raise UsageError(f"{found.setting('cpu')} needs {URL}, the address of a Prometheus.")
    return found


class Prometheus:
    """A client of the Prometheus at PROMETHEUS_URL.

    Raises:
        UsageError: the file of the token can't be read.
    """

    def __init__(self, settings: Settings, within_s: float = ANSWER_WITHIN_S) -> None:
        self._url, self._within_s = settings.prometheus_url.rstrip("/"), within_s
        self._opener = net.opener(authorization=_authorization(settings))

    def cpu_s(self, of: Queries) -> float:
        """Return the CPU seconds that a service has used so far. Raises Refused."""
        return self._number(of.setting("cpu"), "cpu", of.cpu)

    def memory_bytes(self, of: Queries) -> float:
        """Return the memory that a service uses now. Raises Refused."""
        return self._number(of.setting("memory"), "memory", of.memory)

    def check(self, of: Queries, title: str) -> None:
        """Try both queries.

        Raises:
            SetupError: a query did not return one number.
        """
        failures = []
        for read in (self.cpu_s, self.memory_bytes):
            try:
                read(of)
            except Refused as refusal:
                failures.append(refusal.failure)
        if failures:
            raise refused(f"Prometheus, for {title},", self._url, failures)

    def _number(self, setting: str, what: str, query: str) -> float:
        url = f"{self._url}/api/v1/query?{urlencode({'query': query})}"
        try:
            status, content = net.request(url, within_s=self._within_s, opener=self._opener)
        except NotReady as error:
            reason = str(error).removeprefix(f"GET {url}: ")
            raise Refused(Failure(URL, f"no answer: {reason}", "Check host and port")) from None
        if status in (401, 403):
            raise Refused(Failure(TOKEN, f"HTTP {status}", "Name the file of a valid token"))
        answer = _json(content)
        if status != OK or "data" not in answer:
            said = str(answer.get("error") or content.decode(errors="replace"))
            shown = f"HTTP {status} {' '.join(said.split())[:200]}"
            at = setting if "error" in answer else URL
            raise Refused(Failure(at, shown, f"It must be {_must_be(at, what)}"))
        return _one_number(answer["data"], setting, what)


def _must_be(setting: str, what: str) -> str:
    return "the URL of a Prometheus" if setting == URL else f"a query for {WHAT[what]}"


def _json(content: bytes) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _one_number(data: Any, setting: str, what: str) -> float:
    """Return the number in the `data` of an answer, which is a vector or a scalar."""
    found = data["result"]
    values = (
        [found[1]]
        if data["resultType"] == "scalar"
        else [each["value"][1] for each in found if "value" in each]
    )
    if len(values) != 1:
        shown = f"{len(values)} values instead of one"
        remedy = "Sum them up: sum(…)" if values else f"It must be a query for {WHAT[what]}"
        raise Refused(Failure(setting, shown, remedy))
    number = float(values[0])
    if not math.isfinite(number) or number < 0:
        raise Refused(Failure(setting, f"the value {values[0]}", f"It must be {WHAT[what]}"))
    return number


def _authorization(settings: Settings) -> str:
    """Return the value of the header `Authorization` with the token; empty if there is no token."""
    if not (file := settings.prometheus_token_file):
        return ""
    try:
        return f"Bearer {Path(file).read_text().strip()}"
    except OSError as error:
        raise UsageError(f"{TOKEN}: {file} can't be read ({error.strerror}).") from None
