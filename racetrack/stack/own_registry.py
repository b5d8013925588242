"""A schema registry that runs elsewhere.

The stack's service `registry` is then a relay on this machine, which adds TLS and the password, so
that all clients connect as they do to a registry of the stack. The schemas that a run registers are
named by topics, so their names begin with KAFKA_TOPIC_PREFIX.
"""

import base64
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from racetrack.config import Settings
from racetrack.errors import BusyError, UsageError
from racetrack.stack import net
from racetrack.stack.elsewhere import Failure, Passed, refused
from racetrack.stack.service import NotReady

CHECK = "racetrack-check"
SCHEMA = {"type": "record", "name": "tried", "fields": [{"name": "number", "type": "long"}]}
# API of Apicurio, version 2, by which Debezium's converter registers schemas. The remaining clients
# use Confluent's API.
APICURIO = "/apis/registry/v2"
OK = 200
REMEDIES = {
    401: ("REGISTRY_USERNAME", "Check the user, and REGISTRY_PASSWORD or its file"),
    403: ("REGISTRY_USERNAME", "Give this user the right to register and delete schemas"),
    404: ("REGISTRY_URL", "It must end with the path of Confluent's API, such as /apis/ccompat/v7"),
}
CERTIFICATE = (
    "REGISTRY_SSL_CA_LOCATION",
    "Name the file of the authority that signed the registry's certificate",
)
UNREACHABLE = ("REGISTRY_URL", "Check host, port and scheme (http or https)")


def authorization(settings: Settings) -> str:
    """Return the HTTP header's value for user and password; empty without a user. It is a secret.

    Raises:
        UsageError: the password's file can't be read.
    """
    if not settings.registry_username:
        return ""
    both = f"{settings.registry_username}:{password(settings)}"
    return f"Basic {base64.b64encode(both.encode()).decode()}"


def password(settings: Settings) -> str:
    """Return the password of the registry, which may be in a file.

    Raises:
        UsageError: the file can't be read.
    """
    if not (file := settings.registry_password_file):
        return settings.registry_password.get_secret_value()
    try:
        return Path(file).read_text().rstrip("\n")
    except OSError as error:
        raise UsageError(f"REGISTRY_PASSWORD_FILE: {file}: {error.strerror}.") from None


class _Refusal(Exception):
    def __init__(self, failure: Failure) -> None:
        self.failure = failure


class _Client:
    def __init__(self, settings: Settings) -> None:
        self.url = settings.registry_url.rstrip("/")
        self._opener = net.opener(settings.registry_ssl_ca_location, authorization(settings))

    def ask(self, what: str, method: str, url: str, body: object = None) -> Any:
        """Return the JSON of an answer. Raise _Refusal if there is no usable answer."""
        try:
            status, content = net.request(url, method, body, opener=self._opener)
        except NotReady as error:
            setting, remedy = CERTIFICATE if "CERTIFICATE" in str(error) else UNREACHABLE
            raise _Refusal(Failure(setting, f"can't {what}: {error}", remedy)) from None
        shown = content.decode(errors="replace").strip()
        if status != OK:
            setting, remedy = REMEDIES.get(status, ("REGISTRY_URL", "See the registry's log"))
            answer = f"can't {what}: HTTP {status} {' '.join(shown.split())[:200]}"
            raise _Refusal(Failure(setting, answer, remedy))
        try:
            return json.loads(shown or "null")
        except ValueError:
            wrong = f"can't {what}: the answer is not JSON: {shown[:80]}"
            raise _Refusal(Failure("REGISTRY_URL", wrong, REMEDIES[404][1])) from None

    def subjects(self, prefix: str) -> list[str]:
        """Return the names with this prefix."""
        found = self.ask("list schemas", "GET", f"{self.url}/subjects")
        return sorted(name for name in found if name.startswith(prefix))

    def delete(self, subject: str) -> None:
        """Delete all versions of a subject, which has to be done twice to remove them."""
        url = f"{self.url}/subjects/{quote(subject, safe='')}"
        self.ask("delete schemas", "DELETE", url)
        self.ask("delete schemas", "DELETE", f"{url}?permanent=true")


class _Registry:
    """See `racetrack.stack.elsewhere.Elsewhere`."""

    service, title, setting, starts_here = "registry", "Schema registry", "REGISTRY_URL", True

    def address(self, settings: Settings) -> str:
        return settings.registry_url

    def check(self, settings: Settings) -> Passed:
        """Register, read and delete a schema, and find Apicurio's own API."""
        client = _Client(settings)
        subject = f"{settings.kafka_topic_prefix}{CHECK}-value"
        url, origin = client.url, "://".join(urlsplit(client.url)[:2])
        versions = f"{url}/subjects/{subject}/versions"
        steps: dict[str, Callable[[], object]] = {
            "list schemas": lambda: client.subjects(""),
            "register schemas": lambda: client.ask(
                "register schemas", "POST", versions, {"schema": json.dumps(SCHEMA)}
            ),
            "read schemas": lambda: client.ask("read schemas", "GET", f"{versions}/latest"),
            "delete schemas": lambda: client.delete(subject),
            "use Apicurio's API": lambda: client.ask(
                "use Apicurio's API, which Debezium needs", "GET", f"{origin}{APICURIO}/system/info"
            ),
        }
        for step in steps.values():
            try:
                step()
            except _Refusal as refusal:
                raise refused(self.title, settings.registry_url, [refusal.failure]) from None
        if own := client.subjects(settings.kafka_topic_prefix):
            raise BusyError(
                f"In the registry at {settings.registry_url}, {len(own)} schemas begin with"
                f" {settings.kafka_topic_prefix}, such as {own[0]}: another run uses this prefix,"
                " or was killed. Set another KAFKA_TOPIC_PREFIX, or remove these schemas with"
                " `./race down`."
            )
        return Passed(tuple(steps))

    def remove(self, settings: Settings, run_name: str) -> Sequence[str]:  # noqa: ARG002
        """Remove the schemas whose names begin with the prefix."""
        client, removed = _Client(settings), 0
        try:
            for subject in client.subjects(settings.kafka_topic_prefix):
                client.delete(subject)
                removed += 1
        except _Refusal as refusal:
            names = f"{settings.kafka_topic_prefix}*"
            address = settings.registry_url
            return [f"not all schemas {names} were removed from {address}. {refusal.failure}"]
        return [f"removed {removed} schemas from {settings.registry_url}"] if removed else []


ELSEWHERE = _Registry()
