"""A schema registry that the user provides.

The stack's service `registry` is then a relay on this machine, which adds TLS and the password, so
that clients connect to it like to the stack's own registry. The schemas that a run registers are
named after topics, so their names begin with KAFKA_TOPIC_PREFIX.
"""

import json
from collections.abc import Callable, Sequence
from urllib.parse import quote, urlsplit

from racetrack.config import Settings, secret_content_of
from racetrack.errors import BusyError
from racetrack.stack import own_http
from racetrack.stack.elsewhere import Passed, refused

CHECK = "racetrack-check"
SCHEMA = {"type": "record", "name": "tried", "fields": [{"name": "number", "type": "long"}]}
# Path of Apicurio's own API, version 2, with which Debezium's converter registers schemas. All
# other clients use Confluent's API.
APICURIO = "/apis/registry/v2"
REMEDIES = {
    401: ("REGISTRY_USERNAME", "Check the user, and the password in REGISTRY_PASSWORD_FILE"),
    403: ("REGISTRY_USERNAME", "Give this user the right to register and delete schemas"),
    404: ("REGISTRY_URL", "It must end with the path of Confluent's API, such as /apis/ccompat/v7"),
}


def authorization(settings: Settings) -> str:
    """Return the value of the header `Authorization`; empty without a user. The value is a secret.

    Raises:
        UsageError: the password's file can't be read.
    """
    return own_http.authorization(settings.registry_username, password(settings))


def password(settings: Settings) -> str:
    """Return the password of REGISTRY_USERNAME.

    Raises:
        UsageError: its file can't be read, or all users can read it.
    """
    return secret_content_of(settings, "registry_password_file").rstrip("\n")


def apicurio_url(settings: Settings) -> str:
    """Return the URL of Apicurio's own API."""
    return "://".join(urlsplit(settings.registry_url)[:2]) + APICURIO


class _Client(own_http.HttpService):
    def __init__(self, settings: Settings) -> None:
        super().__init__("registry", settings, authorization(settings), REMEDIES)

    def subjects(self, prefix: str) -> list[str]:
        """Return the names of the registered schemas (subjects) that begin with `prefix`."""
        found = self.ask("list schemas", "GET", f"{self.url}/subjects")
        return sorted(name for name in found if name.startswith(prefix))

    def delete(self, subject: str) -> None:
        """Delete all versions of a subject. It takes two requests: the first only marks them as
        deleted."""
        url = f"{self.url}/subjects/{quote(subject, safe='')}"
        self.ask("delete schemas", "DELETE", url)
        self.ask("delete schemas", "DELETE", f"{url}?permanent=true")


class _Registry:
    """Implementation of `racetrack.stack.elsewhere.Elsewhere`."""

    service, title, setting, starts_here = "registry", "Schema registry", "REGISTRY_URL", True

    def address(self, settings: Settings) -> str:
        return settings.registry_url

    def check(self, settings: Settings) -> Passed:
        """Register, read and delete a schema, and send a request to Apicurio's own API."""
        client = _Client(settings)
        subject = f"{settings.kafka_topic_prefix}{CHECK}-value"
        url = client.url
        versions = f"{url}/subjects/{subject}/versions"
        steps: dict[str, Callable[[], object]] = {
            "list schemas": lambda: client.subjects(""),
            "register schemas": lambda: client.ask(
                "register schemas", "POST", versions, {"schema": json.dumps(SCHEMA)}
            ),
            "read schemas": lambda: client.ask("read schemas", "GET", f"{versions}/latest"),
            "delete schemas": lambda: client.delete(subject),
            "use Apicurio's API": lambda: client.ask(
                "use Apicurio's API, which Debezium needs",
                "GET",
                f"{apicurio_url(settings)}/system/info",
            ),
        }
        for step in steps.values():
            try:
                step()
            except own_http.Refusal as refusal:
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
        except own_http.Refusal as refusal:
            names = f"{settings.kafka_topic_prefix}*"
            address = settings.registry_url
            return [f"not all schemas {names} were removed from {address}. {refusal.failure}"]
        return [f"removed {removed} schemas from {settings.registry_url}"] if removed else []


ELSEWHERE = _Registry()
