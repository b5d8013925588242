"""Series of a running session, as the registry of metrics defines them.

The id of a series is the key of its figure, followed by the values of the figure's labels, such as
an engine and a view, separated by slashes.
"""

from collections.abc import Mapping, Sequence

from racetrack.live.contract import Message
from racetrack.metrics import CHARTS, LIVE, Live, Metric

COUNT = "count"  # the view whose lag is that of the engine's count


def series_id(metric: Metric, *labels: str) -> str:
    """Return the id of a series."""
    return "/".join((metric.key, *labels))


def of_id(series: str) -> tuple[Metric, Live, list[str]]:
    """Return the figure of a series, how it is shown, and the values of its labels."""
    key, *labels = series.split("/", 2)
    return *LIVE[key], labels


def expected(views: Mapping[str, Sequence[str]], services: Sequence[str]) -> list[str]:
    """Return the ids of all series of a session. `views` are the traced views by engine."""
    labels: dict[tuple[str, ...], list[tuple[str, ...]]] = {
        (): [()],
        ("engine",): [(engine,) for engine in views],
        ("engine", "view"): [
            (engine, view) for engine, names in views.items() for view in (COUNT, *names)
        ],
        ("service",): [(service,) for service in services],
    }
    return [
        series_id(metric, *values)
        for metric, live in LIVE.values()
        for values in labels[live.labels]
    ]


def definition(series: str, owners: Mapping[str, str]) -> Message:
    """Return the definition of a series for the page. `owners` are the engines of services."""
    metric, live, labels = of_id(series)
    is_alone = sum(other.chart == live.chart for _, other in LIVE.values()) == 1
    engine = labels[0] if labels and live.labels[0] == "engine" else None
    service = labels[0] if live.labels == ("service",) else None
    return {
        "id": series,
        "key": metric.key,
        "label": " ".join(labels if is_alone else (metric.title, *labels)),
        "unit": metric.unit,
        "group": live.chart,
        "look": live.look,
        "engine": engine or owners.get(service or ""),
        "service": service,
    }


def layout() -> Message:
    """Return what the page shows: the charts, and the figures in the panel of an engine."""
    charts = {name: {"title": title, "means": means} for name, (title, means) in CHARTS.items()}
    return {
        "charts": charts,
        "panel": [
            {
                "key": metric.key,
                "title": metric.title,
                "unit": metric.unit,
                "means": metric.means,
                "group": live.chart,
            }
            for metric, live in LIVE.values()
            if live.panel
        ],
    }
