"""Addresses of the stack's services, and TCP and HTTP requests to them."""

import contextlib
import json
import socket
import ssl
import urllib.error
import urllib.request

from racetrack import kafka_endpoint
from racetrack.config import Settings
from racetrack.kafka_endpoint import KafkaEndpoint
from racetrack.mysql_endpoint import MysqlEndpoint
from racetrack.stack.service import NotReady
from racetrack.workloads.contract import find_workload

ANSWER_WITHIN_S = 5.0


def opener(ca_file: str = "", authorization: str = "") -> urllib.request.OpenerDirector:
    """Return a client for `request`. It ignores the environment's proxies, because the stack's
    services listen on this machine.

    `ca_file` replaces the system's certificate authorities. `authorization` is the value of the
    header of this name.
    """
    handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
    if ca_file:
        context = ssl.create_default_context(cafile=ca_file)
        handlers.append(urllib.request.HTTPSHandler(context=context))
    found = urllib.request.build_opener(*handlers)
    found.addheaders = [("Authorization", authorization)] if authorization else []
    return found


_plain = opener()


def host(settings: Settings) -> str:
    """Return the address at which clients reach services that listen on BIND_ADDRESS."""
    return settings.reach_address


def endpoint(address: str, port: int) -> str:
    """Return `host:port`."""
    return f"{address}:{port}"


def kafka(settings: Settings) -> KafkaEndpoint:
    """Return the Kafka that the user provides, or the stack's broker."""
    broker = endpoint(settings.peer_kafka or host(settings), settings.kafka_port)
    return kafka_endpoint.elsewhere(settings) or KafkaEndpoint(broker)


def registry(settings: Settings) -> str:
    """Return the schema registry's `host:port`."""
    return endpoint(settings.peer_registry or host(settings), settings.schema_registry_port)


def redis(settings: Settings) -> str:
    """Return Redis' `host:port`."""
    return endpoint(settings.peer_redis or host(settings), settings.redis_port)


def mysql(settings: Settings) -> MysqlEndpoint:
    """Return the stack's MySQL. It has one database and one user for the workload; both have the
    name that the workload defines."""
    name = find_workload(settings.workload).database
    return MysqlEndpoint(
        settings.peer_mysql or host(settings),
        settings.mysql_port,
        name,
        writer=name,
        writer_password=settings.mysql_shop_password.get_secret_value(),
        reader="debezium",
        reader_password=settings.mysql_debezium_password.get_secret_value(),
    )


def elsewhere(settings: Settings, *names: str) -> Settings:
    """Return a copy of the settings in which the ports `names` are replaced by free ports."""
    with contextlib.ExitStack() as sockets:
        ports = {}
        for name in names:
            taken = sockets.enter_context(socket.socket())
            taken.bind((settings.bind_address, 0))
            ports[name] = taken.getsockname()[1]
    return settings.model_copy(update=ports)


def require_listener(settings: Settings, port: int, address: str = "") -> None:
    """Check that a process listens on a port of `address`, by default of this machine.

    Raises:
        NotReady: no process listens there.
    """
    try:
        socket.create_connection((address or host(settings), port), timeout=1).close()
    except OSError as error:
        raise NotReady(f"nothing answers on port {port} ({error.strerror or error})") from None


def request(
    url: str,
    method: str = "GET",
    body: object = None,
    within_s: float = ANSWER_WITHIN_S,
    opener: urllib.request.OpenerDirector = _plain,
) -> tuple[int, bytes]:
    """Send an HTTP request with `body` as JSON; return (status, content) whatever the status.

    Raises:
        NotReady: there was no HTTP answer within `within_s`.
    """
    data = None if body is None else json.dumps(body).encode()
    outgoing = urllib.request.Request(  # noqa: S310  # the URL is made of settings
        url, data, {"Content-Type": "application/json"}, method=method
    )
    try:
        with opener.open(outgoing, timeout=within_s) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read()
    except OSError as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise NotReady(f"{method} {url}: {reason}") from None


def get_json(url: str) -> object:
    """Return the JSON at a URL.

    Raises:
        NotReady: the status is not 200, or the content is not JSON.
    """
    status, answer = request(url)
    if status != 200:
        raise NotReady(f"GET {url}: HTTP {status}")
    try:
        return json.loads(answer)
    except ValueError:
        raise NotReady(f"GET {url}: the answer is not JSON") from None
