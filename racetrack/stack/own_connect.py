"""A Kafka Connect that the user provides, with Debezium and Apicurio's converter.

The stack's service `debezium` is then only a relay to it on this machine. A run creates a connector
named RUN_NAME there, and deletes the connector and its offsets at the end.
"""

from collections.abc import Callable, Sequence
from typing import Any

from racetrack.clock import attempts
from racetrack.config import Settings, content_of
from racetrack.stack import debezium_connector, net, own_http, own_registry
from racetrack.stack.elsewhere import RUN_NAME, Failure, Passed, refused

CHECK = f"{RUN_NAME}_check"
STOPPED_WITHIN_S, LOOK_EVERY_S = 10.0, 0.2
PLUGINS = (debezium_connector.CLASS, debezium_connector.CONVERTER)
VERSION = "It has to be Kafka Connect 3.7 or later"
REMEDIES = {
    400: ("CONNECT_URL", VERSION),
    401: ("CONNECT_USERNAME", "Check the user, and CONNECT_PASSWORD_FILE"),
    403: ("CONNECT_USERNAME", "Give this user the right to create and delete connectors"),
    404: ("CONNECT_URL", "It has to be the URL of its REST API, of version 3.7 or later"),
    405: ("CONNECT_URL", VERSION),
}
# Keeps the history of table schemas in memory, so that no file or topic remains. As a consequence,
# a connector that Kafka Connect restarts fails, and the run fails with it.
HISTORY = "io.debezium.relational.history.MemorySchemaHistory"


def authorization(settings: Settings) -> str:
    """Return the value of the header `Authorization`; empty without a user. The value is a secret.

    Raises:
        UsageError: the password's file can't be read.
    """
    password = content_of(settings, "connect_password_file").rstrip("\n")
    return own_http.authorization(settings.connect_username, password)


def connector_config(settings: Settings) -> dict[str, str]:
    """Return the configuration of a run's connector. It contains passwords, unless the user's
    properties replace them by references.

    Raises:
        UsageError: a file that a setting names can't be read.
    """
    return {
        **debezium_connector.options(settings, {}),
        "database.password": net.mysql(settings).reader_password,
        "schema.history.internal": HISTORY,
        **debezium_connector.converters(own_registry.apicurio_url(settings)),
        **debezium_connector.for_converters(_login(settings)),
        **_properties(settings),
    }


def versions(url: str) -> dict[str, str]:
    """Return the version of the Kafka Connect at `url`, and those of the plugins that a run uses,
    as far as they report one."""
    worker: Any = net.get_json(url)
    plugins: Any = net.get_json(f"{url}/connector-plugins?connectorsOnly=false")
    found = {each["class"]: each["version"] for each in plugins if each.get("version")}
    names = {debezium_connector.CLASS: "debezium", debezium_connector.CONVERTER: "avro-converter"}
    own = {name: found[each] for each, name in names.items() if each in found}
    return {**own, "kafka-connect": worker["version"]}


def _login(settings: Settings) -> dict[str, str]:
    if not settings.registry_username:
        return {}
    return {
        "apicurio.auth.username": settings.registry_username,
        "apicurio.auth.password": own_registry.password(settings),
    }


def _properties(settings: Settings) -> dict[str, str]:
    lines = map(str.strip, content_of(settings, "connect_properties_file").splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs}


class _Client(own_http.HttpService):
    def __init__(self, settings: Settings) -> None:
        super().__init__("connect", settings, authorization(settings), REMEDIES)

    def connector(self, what: str, method: str, name: str, path: str = "") -> Any:
        """Send a request about a connector, and return the answer."""
        return self.ask(what, method, f"{self.url}/connectors/{name}{path}")

    def require_plugins(self) -> None:
        """Check that the plugins that a run needs are installed."""
        plugins = f"{self.url}/connector-plugins?connectorsOnly=false"
        found = {each["class"] for each in self.ask("list plugins", "GET", plugins)}
        if missing := [each for each in PLUGINS if each not in found]:
            answer = f"it has no plugin {' and no '.join(missing)}"
            remedy = "Install it in a folder of its plugin.path, and restart it"
            raise own_http.Refusal(Failure("CONNECT_URL", answer, remedy))

    def require_kafka(self, cluster: str) -> None:
        """Check that this Kafka Connect uses the Kafka with the id `cluster`."""
        own = self.ask("reach it", "GET", f"{self.url}/").get("kafka_cluster_id")
        if own != cluster:
            answer = f"its Kafka has the id {own}, and that of KAFKA_BOOTSTRAP_SERVERS {cluster}"
            raise own_http.Refusal(Failure("CONNECT_URL", answer, "Both have to be the same"))

    def validate(self, config: dict[str, str]) -> None:
        """Let Debezium check the configuration. It connects to MySQL to do so."""
        url = f"{self.url}/connector-plugins/{debezium_connector.CLASS}/config/validate"
        found = self.ask("use Debezium", "PUT", url, {"name": CHECK, **config})
        values = (each["value"] or {} for each in found["configs"])
        if errors := [f"{each['name']}: {e}" for each in values for e in each.get("errors", ())]:
            answer = f"Debezium there refuses the connector: {'; '.join(errors)}"
            remedy = (
                "It has to reach MySQL at the address in MYSQL_URL; see CONNECT_PROPERTIES_FILE"
            )
            raise own_http.Refusal(Failure("CONNECT_URL", answer, remedy))

    def create_stopped(self, config: dict[str, str]) -> None:
        """Create the connector CHECK in the state STOPPED, so that it reads nothing."""
        body = {"name": CHECK, "config": config, "initial_state": "STOPPED"}
        self.ask("create connectors", "POST", f"{self.url}/connectors", body)

    def delete(self, name: str) -> None:
        """Stop a connector, then delete its offsets and itself."""
        self.connector("stop connectors", "PUT", name, "/stop")
        for _ in attempts(STOPPED_WITHIN_S, LOOK_EVERY_S):
            if self._is_stopped(name):
                break
        try:
            self.connector("delete offsets", "DELETE", name, "/offsets")
        finally:
            self.connector("delete connectors", "DELETE", name)

    def _is_stopped(self, name: str) -> bool:
        try:
            status = self.connector("read connectors' states", "GET", name, "/status")
        except own_http.Refusal as refusal:
            # It was created a moment ago, and has no state yet.
            if refusal.status == own_http.NOT_FOUND:
                return False
            raise
        return status["connector"]["state"] == "STOPPED" and not status["tasks"]


class Connect:
    """Implementation of `racetrack.stack.elsewhere.Elsewhere`. `cluster_id` returns the id of the
    run's Kafka."""

    service, title, setting, starts_here = "debezium", "Kafka Connect", "CONNECT_URL", True

    def __init__(self, cluster_id: Callable[[Settings], str]) -> None:
        self._cluster_id = cluster_id

    def address(self, settings: Settings) -> str:
        return settings.connect_url

    def check(self, settings: Settings) -> Passed:
        """Validate a run's connector; create a stopped connector and delete it."""
        client, config = _Client(settings), connector_config(settings)
        steps: dict[str, Callable[[], object]] = {
            "use the same Kafka": lambda: client.require_kafka(self._cluster_id(settings)),
            "find its plugins": client.require_plugins,
            "use Debezium": lambda: client.validate(config),
            "create connectors": lambda: client.create_stopped(config),
            "delete connectors": lambda: client.delete(CHECK),
        }
        for step in steps.values():
            try:
                step()
            except own_http.Refusal as refusal:
                raise refused(self.title, settings.connect_url, [refusal.failure]) from None
        return Passed(tuple(steps))

    def remove(self, settings: Settings, run_name: str) -> Sequence[str]:
        """Delete the run's connector and its offsets."""
        if not run_name:
            return ()
        client, url = _Client(settings), settings.connect_url
        try:
            client.connector("read connectors", "GET", run_name)
            client.delete(run_name)
        except own_http.Refusal as refusal:
            if refusal.status == own_http.NOT_FOUND:
                return ()
            by_hand = f"Remove it yourself: DELETE {url}/connectors/{run_name}"
            what = f"not all of the connector {run_name} was removed from {url}"
            return (f"{what}. {refusal.failure}\n  {by_hand}",)
        return (f"removed the connector {run_name} and its offsets from {url}",)


def _cluster_id(settings: Settings) -> str:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    admin = AdminClient(net.kafka(settings).librdkafka({"log_level": 0}))
    try:
        return str(admin.list_topics(timeout=own_http.ANSWER_WITHIN_S).cluster_id)
    except KafkaException as error:
        answer = f"can't read its id: {error.args[0].str()}"
        raise own_http.Refusal(
            Failure("KAFKA_BOOTSTRAP_SERVERS", answer, "See the check of Kafka")
        ) from None


ELSEWHERE = Connect(_cluster_id)
