"""Requests to the HTTP API of a service that the user provides, and their errors.

The service's settings are called `<NAME>_URL`, `<NAME>_USERNAME`, `<NAME>_PASSWORD_FILE` and
`<NAME>_SSL_CA_LOCATION`.
"""

import base64
import json
from collections.abc import Mapping
from typing import Any

from racetrack.config import Settings
from racetrack.stack import net
from racetrack.stack.elsewhere import Failure
from racetrack.stack.service import NotReady

OK = range(200, 300)
ANSWER_WITHIN_S = 10.0
NOT_FOUND = 404


class Refusal(Exception):
    """A request got no answer, or an unusable one."""

    def __init__(self, failure: Failure, status: int = 0) -> None:
        super().__init__(str(failure))
        self.failure, self.status = failure, status


def authorization(user: str, password: str) -> str:
    """Return the value of the header `Authorization` for a login; empty without a user. The value
    is a secret."""
    both = base64.b64encode(f"{user}:{password}".encode()).decode()
    return f"Basic {both}" if user else ""


class HttpService:
    """A service whose settings start with `<name>_`. `remedies` maps an HTTP status to the setting
    at fault and the remedy; it must contain NOT_FOUND."""

    def __init__(
        self, name: str, settings: Settings, authorization: str, remedies: Mapping[int, Any]
    ) -> None:
        self.url: str = getattr(settings, f"{name}_url").rstrip("/")
        ca_file = getattr(settings, f"{name}_ssl_ca_location")
        self._opener = net.opener(ca_file, authorization)
        self._prefix, self._remedies = name.upper(), remedies

    def ask(self, what: str, method: str, url: str, body: object = None) -> Any:
        """Send a request and return the JSON of the answer. `what` names the operation in error
        messages, such as `list schemas`.

        Raises:
            Refusal: there is no usable answer.
        """
        try:
            status, content = net.request(url, method, body, ANSWER_WITHIN_S, self._opener)
        except NotReady as error:
            raise Refusal(self._unreachable(what, str(error))) from None
        shown = content.decode(errors="replace").strip()
        if status not in OK:
            other = (f"{self._prefix}_URL", "See its log")
            setting, remedy = self._remedies.get(status, other)
            answer = f"can't {what}: HTTP {status} {' '.join(shown.split())[:200]}"
            raise Refusal(Failure(setting, answer, remedy), status)
        try:
            return json.loads(shown or "null")
        except ValueError:
            wrong = f"can't {what}: the answer is not JSON: {shown[:80]}"
            _, remedy = self._remedies[NOT_FOUND]
            raise Refusal(Failure(f"{self._prefix}_URL", wrong, remedy)) from None

    def _unreachable(self, what: str, error: str) -> Failure:
        answer = f"can't {what}: {error}"
        if "CERTIFICATE" in error:
            remedy = "Name the file of the authority that signed its certificate"
            return Failure(f"{self._prefix}_SSL_CA_LOCATION", answer, remedy)
        remedy = "Check host, port and scheme (http or https)"
        return Failure(f"{self._prefix}_URL", answer, remedy)
