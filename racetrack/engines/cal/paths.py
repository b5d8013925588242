"""Observation paths that can be calibrated (CAL_PATH): where the calibration engine writes its
views, and the engine whose code follows them there."""

from collections.abc import Mapping, Sequence

from racetrack import plugins
from racetrack.config import Settings
from racetrack.engines import find_engine
from racetrack.engines.cal.views import TracedRows, Views
from racetrack.engines.contract import Engine
from racetrack.engines.shared.sql_engine import SqlEngine
from racetrack.engines.shared.upsert.engine import UpsertEngine
from racetrack.errors import UsageError
from racetrack.stack import net
from racetrack.stack.contract import Stack
from racetrack.workloads.contract import TracedView, find_workload, workload_in

TOPIC, POSTGRES, DEEPHAVEN, REDIS = "topic", "postgres", "deephaven", "redis"
NEEDS = {TOPIC: (), POSTGRES: ("postgres",), DEEPHAVEN: ("deephaven",), REDIS: ("redis",)}
_FOLLOWED_AS = {POSTGRES: "pg", DEEPHAVEN: "dh", REDIS: "storm"}


class ByTopics(UpsertEngine):
    """Follows the topics that the calibration engine writes."""

    name = "cal"
    title = "Calibration engine"

    def traced_views(self, settings: Settings) -> Sequence[TracedView]:
        """Return the traced views that the calibration engine writes."""
        return traced_views(settings)


BY_TOPICS = ByTopics()


def observer_of(path: str) -> Engine:
    """Return the engine whose code follows and reads views on this path."""
    return find_engine(_FOLLOWED_AS[path]) if path in _FOLLOWED_AS else BY_TOPICS


def traced_views(settings: Settings) -> list[TracedView]:
    """Return the traced views that the calibration engine writes: with tracer events, those of the
    main topic that contain due times."""
    workload = workload_in(settings)
    if not settings.tracer_events_per_second:
        return []
    return [
        view
        for view in workload.traced_views
        if view.key and view.is_time and view.source == workload.topic.name
    ]


def views_of(settings: Settings) -> Views:
    """Return the views that the calibration engine has: the progress views, and traced views."""
    workload = workload_in(settings)
    traced = [
        TracedRows(
            view.view,
            tuple(workload.view(view.view).columns),
            view.column,
            view.key,
            [int(key) for key in view.keys(settings)],
        )
        for view in traced_views(settings)
    ]
    return Views(workload.progress, workload.summary, traced)


def environment(settings: Settings, path: str) -> Mapping[str, str]:
    """Return the variables with the views and, through PostgreSQL or Redis, its address."""
    variables = {"CAL_VIEWS": views_of(settings).as_text()}
    if path == REDIS:
        return {**variables, "CAL_REDIS": net.redis(settings)}
    if path != POSTGRES:
        return variables
    server = _postgres().server_here(settings)
    return {**variables, "CAL_CONNINFO": server.conninfo, "PGPASSWORD": server.password}


def _postgres() -> SqlEngine:
    engine = find_engine(_FOLLOWED_AS[POSTGRES])
    assert isinstance(engine, SqlEngine)  # noqa: S101  # pg is one
    return engine


def require_own(settings: Settings, path: str) -> None:
    """Check that the server on this path is the stack's own, that views are followed there, and
    that the workload has progress views, which are calibrated.

    Raises:
        UsageError: the user provides it, views are followed or can only be read on another path,
            or there are none.
    """
    if path not in _FOLLOWED_AS:
        return
    if not find_workload(settings.workload).progress:
        raise UsageError(
            f"CAL_PATH={path}: the workload {settings.workload} has no progress views to write"
            " there. Set CAL_PATH=topic."
        )
    if path == REDIS and settings.reads_per_second:
        raise UsageError(
            "CAL_PATH=redis: there, clients can read the views of the workload ads only. Set"
            " READS_PER_SECOND=0."
        )
    engine = observer_of(path)
    if engine.runs_elsewhere(settings):
        raise UsageError(
            f"CAL_PATH={path} is calibrated with the {engine.title} that the stack starts. Unset"
            " the setting with the address of another one."
        )
    if engine.observer_in(settings) is not engine:
        raise UsageError(
            f"CAL_PATH={path}: views of {engine.title} are followed in Kafka with"
            " DEEPHAVEN_PUBLISH=true. Unset that, or set CAL_PATH=topic."
        )


def begin(stack: Stack, path: str) -> None:
    """Create Deephaven's tables. On other paths the consumer creates the views."""
    if path != DEEPHAVEN:
        return
    views, kafka = views_of(stack.settings), stack.internal_endpoints.kafka
    scripts = [
        f"{name} = racetrack_cal_view({kafka.topic(f'cal.{name}')!r}, {key!r}, {columns!r})"
        for name, key, columns in (
            (views.progress, "partition", ["partition", "total", "max_received_at"]),
            (views.summary, "summary_of", ["total", "max_received_at"]),
            *((rows.view, rows.key, [rows.key, rows.column]) for rows in views.traced),
        )
    ]
    with plugins.of_engine("dh", "connection").opened(stack.settings) as session:
        session.run_script(_TABLES.format(properties=kafka.java()) + "\n".join(scripts))


# Deephaven reads the topics that the consumer writes, and clients subscribe to these tables.
_TABLES = """
from deephaven import dtypes as _types
from deephaven.stream.kafka import consumer as _kafka

def racetrack_cal_view(topic, key, columns):
    types = {{name: _types.int64 for name in columns}}
    types.setdefault(key, _types.string)
    rows = _kafka.consume(
        {properties!r},
        topic,
        offsets=_kafka.ALL_PARTITIONS_SEEK_TO_BEGINNING,
        key_spec=_kafka.KeyValueSpec.IGNORE,
        value_spec=_kafka.json_spec(types),
        table_type=_kafka.TableType.blink(),
    )
    return rows.last_by(key).view(columns)

"""
