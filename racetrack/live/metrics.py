"""A session's current figures for Prometheus."""

from collections.abc import Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector, CollectorRegistry

from racetrack.live.contract import Message
from racetrack.live.series import of_id
from racetrack.metrics import LIVE
from racetrack.results.figures import VerdictKind


class _Figures(Collector):
    """Collects the metrics for one answer."""

    def __init__(self, values: Mapping[str, float | None], state: Message) -> None:
        self._values, self._state = values, state

    def collect(self) -> Iterable[Metric]:
        """Yield all metrics."""
        families = {
            key: GaugeMetricFamily(f"racetrack_{live.exported}", metric.means, labels=live.labels)
            for key, (metric, live) in LIVE.items()
            if live.exported
        }
        for series, value in self._values.items():
            metric, live, labels = of_id(series)
            if value is not None and live.exported:
                families[metric.key].add_metric(labels, value * live.factor)
        yield from families.values()
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
