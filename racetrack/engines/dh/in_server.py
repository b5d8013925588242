"""Code that runs inside a Deephaven server that the user provides; `elsewhere.py` sends it there as
text.

All global variables that a run creates in the server are named after the run: the variable `<name>`
contains this code and the global variables of the scripts, and `<name>_<table>` is one of the
scripts' tables.
"""

import json
import socket
import threading
from collections.abc import Mapping
from typing import Any

from deephaven.liveness_scope import LivenessScope  # type: ignore[import-not-found]
from deephaven.table import Table  # type: ignore[import-not-found]

CONNECT_WITHIN_S = CLOSE_WITHIN_S = 5.0


def load(name: str, variables: dict[str, Any], given: str) -> None:
    """Run the scripts, and give clients access to their tables.

    `variables` are the server's global variables. `given` is a JSON object: `addresses` to which
    the scripts will connect, their `environment`, and the `scripts` by file name.

    Raises:
        ConnectionError: an address can't be reached from this server.
    """
    wanted = json.loads(given)
    for address in wanted["addresses"]:
        _require_reachable(address)
    created, namespace = LivenessScope(), {"ENVIRONMENT": wanted["environment"]}
    variables[name] |= {"created": created, "namespace": namespace}
    with created.open():
        for file, source in wanted["scripts"].items():
            exec(compile(source, file, "exec"), namespace)  # noqa: S102
        tables = {key: value for key, value in namespace.items() if isinstance(value, Table)}
    # Otherwise the run was interrupted meanwhile, and its objects have been removed.
    if name in variables:
        variables |= {f"{name}_{key}": table for key, table in tables.items()}


def remove(run: Mapping[str, Any]) -> None:
    """Stop everything that a run's scripts started, and release their tables.

    A function `stop_…` of a script closes a producer, which waits until its last messages are
    delivered or have failed. If that takes long, it continues in the background.
    """
    namespace = run.get("namespace", {})
    stops = [value for key, value in namespace.items() if key.startswith("stop_")]
    closing = [threading.Thread(target=stop, daemon=True) for stop in stops]
    for thread in closing:
        thread.start()
    for thread in closing:
        thread.join(CLOSE_WITHIN_S)
    if "created" in run:
        run["created"].release()


def _require_reachable(address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), CONNECT_WITHIN_S).close()
    except OSError as error:
        raise ConnectionError(
            f"Deephaven can't connect to {address}: {error}. This address must be reachable from"
            " there: set BIND_ADDRESS=0.0.0.0, and KAFKA_ADVERTISED_ADDRESS to this machine's name"
        ) from None
