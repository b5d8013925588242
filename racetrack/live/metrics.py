"""A session's current figures for Prometheus."""

from collections.abc import Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector, CollectorRegistry

from racetrack.live.contract import Message
from racetrack.results.figures import VerdictKind

GIB = 1024**3
# Series of the page → metric, its help, its labels, and the factor to its unit.
SERIES: dict[str, tuple[str, str, tuple[str, ...], float]] = {
    "offered_per_s": ("offered_per_second", "Events due per second", (), 1),
    "published_per_s": ("published_per_second", "Events published per second", (), 1),
    "counted_per_s": ("counted_per_second", "Events counted per second", ("engine",), 1),
    "lag_ms": (
        "lag_seconds",
        "Age of the oldest event that is due but missing in the view",
        ("engine", "view"),
        0.001,
    ),
    "backlog": ("backlog_events", "Events due but not counted", ("engine",), 1),
    "read_ms": ("read_seconds", "Median time to answer a read", ("engine",), 0.001),
    "cpu_pct": ("cpu_cores", "CPU use in cores", ("service",), 0.01),
    "rss_gib": ("memory_bytes", "Resident memory", ("service",), GIB),
    "steal_pct": ("steal_ratio", "Share of all cores taken by the hypervisor", (), 0.01),
    "foreign_cpu_pct": ("foreign_cpu_cores", "CPU use of other programs in cores", (), 0.01),
}


class _Figures(Collector):
    """Collects the metrics for one answer."""

    def __init__(self, values: Mapping[str, float | None], state: Message) -> None:
        self._values, self._state = values, state

    def collect(self) -> Iterable[Metric]:
        """Yield all metrics."""
        for series, (name, text, labels, factor) in SERIES.items():
            family = GaugeMetricFamily(f"racetrack_{name}", text, labels=labels)
            for key, value in self._values.items():
                of, *parts = key.split("/", len(labels))
                if of == series and value is not None and len(parts) == len(labels):
                    family.add_metric(parts, value * factor)
            yield family
        yield from self._of_state(self._state)

    def _of_state(self, state: Message) -> Iterable[Metric]:
        verdict = GaugeMetricFamily(
            "racetrack_verdict", "1 for the current verdict", labels=["engine", "kind"]
        )
        for engine in state["engines"]:
            for kind in (*map(str, VerdictKind), "none"):
                is_kind = float(engine["verdict"]["kind"] == kind)
                verdict.add_metric([engine["name"], kind], is_kind)
        yield verdict
        yield GaugeMetricFamily(
            "racetrack_segment", "Number of the current segment", value=state["segment"]["number"]
        )
        yield CounterMetricFamily("racetrack_actions", "Actions so far", value=state["actions"])


def exposition(
    values: Mapping[str, float | None], state: Message, accept: str
) -> tuple[bytes, str]:
    """Return the metrics as text, and the media type of the text. `values` is the newest value of
    each series. The format is OpenMetrics if the header `Accept` names it, as that of Prometheus
    does. Otherwise it is Prometheus' text format, which `promtool check metrics` reads."""
    registry = CollectorRegistry()
    registry.register(_Figures(values, state))
    encode, media_type = choose_encoder(accept)
    return encode(registry), media_type
