"""Code that runs inside a Deephaven server that the user provides; `elsewhere.py` sends it there as
text.

All global variables that a run creates in the server are named after the run: the variable `<name>`
contains this code and the global variables of the scripts, and `<name>_<table>` is one of the
scripts' tables.
"""

import json
import socket
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from deephaven import merge  # type: ignore[import-not-found]
from deephaven.liveness_scope import LivenessScope  # type: ignore[import-not-found]
from deephaven.table import Table  # type: ignore[import-not-found]

CONNECT_WITHIN_S = CLOSE_WITHIN_S = 5.0
OBSERVED, SEEN = "racetrack_observed", "racetrack_seen"


def load(name: str, variables: dict[str, Any], given: str) -> None:
    """Run the scripts, and give clients access to their tables.

    `variables` are the server's global variables. `given` is a JSON object: `addresses` to which
    the scripts will connect, their `environment`, the `scripts` by file name, and `traced`, the
    traced views.

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
        tables[OBSERVED] = observed(namespace["sampled"])
        if wanted["traced"]:
            tables[SEEN] = seen(tables, wanted["traced"])
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
    for each in closing:
        each.start()
    for each in closing:
        each.join(CLOSE_WITHIN_S)
    if "created" in run:
        run["created"].release()


def observed(sampled: Mapping[str, Any]) -> Any:
    """Return a table with the rows of the summary and of the progress view.

    The table also contains a row for each view on which no other view depends. So a reader sees the
    rows of an update cycle only when all views have completed the cycle.
    """
    values = ["total", "max_received_at"]
    summary = sampled["summary"].view(["kind = `summary`", "partition = -1", *values])
    progress = sampled["progress"].view(
        ["kind = `progress`", "partition = (int) partition", *values]
    )
    others = [
        view.count_by("total").view(
            ["kind = `view`", "partition = -1", "total", "max_received_at = 0L"]
        )
        for view in sampled["last_views"]
    ]
    return merge([summary, progress, *others])


def seen(tables: Mapping[str, Any], traced: Sequence[Sequence[Any]]) -> Any:
    """Return a table with the tracer rows of the traced views."""
    return merge(
        [
            tables[view]
            .where(f"{key} >= {first} && {key} <= {last}")
            .view(
                [
                    f"name = `{name}`",
                    f"partition = (int) ({key} - {first})",
                    f"value = epochMillis({column})" if is_time else f"value = (long) {column}",
                ]
            )
            for name, view, key, first, last, column, is_time in traced
        ]
    )


def _require_reachable(address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), CONNECT_WITHIN_S).close()
    except OSError as error:
        raise ConnectionError(
            f"Deephaven can't connect to {address}: {error}. This address must be reachable from"
            " there: set BIND_ADDRESS=0.0.0.0, and KAFKA_ADVERTISED_ADDRESS to this machine's name"
        ) from None
