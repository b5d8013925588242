"""How services find and ask their peers: addresses, and cheap questions over TCP and HTTP."""

import contextlib
import json
import socket
import urllib.error
import urllib.request

from racetrack.config import Settings
from racetrack.stack.service import NotReady

# Peers listen on this machine: no proxy of the environment may stand between.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def host(settings: Settings) -> str:
    """Where this machine (or this container) reaches what listens on BIND_ADDRESS."""
    return settings.reach_address


def endpoint(address: str, port: int) -> str:
    """`host:port`."""
    return f"{address}:{port}"


def kafka(settings: Settings) -> str:
    """The broker's `host:port`."""
    return endpoint(settings.peer_kafka or host(settings), settings.kafka_port)


def registry(settings: Settings) -> str:
    """The schema registry's `host:port`."""
    return endpoint(settings.peer_registry or host(settings), settings.schema_registry_port)


def redis(settings: Settings) -> str:
    """Redis' `host:port`."""
    return endpoint(settings.peer_redis or host(settings), settings.redis_port)


def mysql_host(settings: Settings) -> str:
    """Where MySQL listens on MYSQL_PORT."""
    return settings.peer_mysql or host(settings)


def elsewhere(settings: Settings, *names: str) -> Settings:
    """The same settings with each of those (ports) at a free port that nobody knows."""
    with contextlib.ExitStack() as sockets:
        ports = {}
        for name in names:
            taken = sockets.enter_context(socket.socket())
            taken.bind((settings.bind_address, 0))
            ports[name] = taken.getsockname()[1]
    return settings.model_copy(update=ports)


def require_listener(settings: Settings, port: int, address: str = "") -> None:
    """Return if something listens there: on this machine, if no address is given.

    Raises:
        NotReady: nothing does.
    """
    try:
        socket.create_connection((address or host(settings), port), timeout=1).close()
    except OSError as error:
        raise NotReady(f"nothing answers on port {port} ({error.strerror or error})") from None


def request(url: str, method: str = "GET", body: object = None) -> tuple[int, bytes]:
    """Ask over HTTP, with `body` as JSON; (status, answer) whatever the status.

    Raises:
        NotReady: there was no HTTP answer within 5 s.
    """
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(  # noqa: S310  # the URL is made of settings
        url, data, {"Content-Type": "application/json"}, method=method
    )
    try:
        with _opener.open(asked, timeout=5) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, refusal.read()
    except OSError as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise NotReady(f"{method} {url}: {reason}") from None


def get_json(url: str) -> object:
    """The JSON behind a URL.

    Raises:
        NotReady: another status than 200, or no JSON.
    """
    status, answer = request(url)
    if status != 200:
        raise NotReady(f"GET {url}: HTTP {status}")
    try:
        return json.loads(answer)
    except ValueError:
        raise NotReady(f"GET {url}: the answer is no JSON") from None
