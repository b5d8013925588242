"""One run's figures and warnings, flat: from `run.json` and the header lines of `top`."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

NATIVE, MADE_HERE = "native", "compose, images made here"
# All that a run samples beside the engine's own services.
NOT_THE_ENGINE = ("broker", "redpanda", "loadgen")
SHORT_WINDOW_S, FEW_SAMPLES = 30.0, 10
BUSY_PCT, STOLEN_PCT = 90.0, 1.0
NO_COST = (
    "The engine's CPU and memory were not measured: none of its processes is known to be here."
)

_TOP_CPU = re.compile(r"^%Cpu\(s\):.*?([\d.]+) id,.*?([\d.]+) st", re.MULTILINE)


def figures_of(run: Mapping[str, Any], folder: Path) -> dict[str, float | None]:
    """The figures of `definitions.FIGURES`; None for what was not measured or not yet recorded."""
    results = run.get("results", {})
    processes = results.get("processes", {})
    engine = list(engine_of(processes).values())
    verdict = results.get("verdict", {})
    measured = verdict.get("measured") or {}
    busy, _ = machine_cpu(folder)
    return {
        "cpu_mean_pct": _total([of.get("cpu_pct", {}).get("mean") for of in engine]),
        "rss_max_gib": _most([of.get("rss_gib", {}) for of in engine]),
        "cpu_s_per_million": _total([of.get("cpu_s_per_million") for of in engine]),
        "lag_p50_ms": measured.get("lag_p50_ms"),
        "lag_p99_ms": measured.get("lag_p99_ms"),
        "lag_max_ms": measured.get("lag_max_ms"),
        "stale_max_ms": measured.get("stale_max_ms"),
        "lag_slope_pct": (measured.get("slope") or {}).get("pct"),
        "dt_p50_ms": results.get("dt_ms", {}).get("p50"),
        "rss_growth_gib_per_million": _total(
            [of.get("rss_growth_gib_per_million") for of in engine]
        ),
        "cpu_user_s": _total([of.get("cpu_user_s") for of in engine]),
        "cpu_system_s": _total([of.get("cpu_system_s") for of in engine]),
        "achieved_pageviews_per_s": results.get("achieved_pageviews_per_s"),
        "processed_pageviews_per_s": verdict.get("throughput", {}).get("processed_per_s"),
        "broker_cpu_mean_pct": processes.get("broker", {}).get("cpu_pct", {}).get("mean"),
        "harness_cpu_pct": results.get("harness", {}).get("cpu_pct"),
        "machine_busy_pct": busy,
    }


def machine_cpu(folder: Path) -> tuple[float | None, float | None]:
    """Percent of all cores that were busy, and that the hypervisor took, over `top`'s headers.

    The first header is left out: it tells of the time since the machine started.
    """
    path = folder / "top_details.log"
    headers = _TOP_CPU.findall(path.read_text()) if path.is_file() else []
    if len(headers) < 2:
        return None, None
    idle, stolen = zip(*((float(i), float(s)) for i, s in headers[1:]), strict=True)
    return round(100 - sum(idle) / len(idle), 1), round(sum(stolen) / len(stolen), 2)


def warnings_of(run: Mapping[str, Any], folder: Path) -> tuple[str, ...]:
    """What a reader has to know before believing the figures."""
    verdict = run.get("results", {}).get("verdict", {})
    found = [*verdict.get("warnings", []), *_of_window(run, verdict), *_of_machine(folder)]
    if (runtime := runtime_of(run)) in (NATIVE, MADE_HERE):
        found.append(
            f"Runtime {runtime}: Apache Kafka stands in for Redpanda, and Apicurio for its"
            " registry. Don't compare with runs of another runtime."
        )
    processes = run.get("results", {}).get("processes")
    if processes is not None and not engine_of(processes):
        found.append(NO_COST)
    return (*found, *run.get("caveats", []))


def runtime_of(described: Mapping[str, Any]) -> str:
    """What the services ran as: containers on images made here have another broker in them."""
    runtime = str(described.get("runtime", "unknown runtime"))
    airgap = described.get("settings", {}).get("airgap", False)
    return MADE_HERE if runtime == "compose" and airgap else runtime


def engine_of(processes: Mapping[str, Any]) -> dict[str, Any]:
    """Of the sampled services, those that are the engine's own: none if it ran elsewhere."""
    return {name: of for name, of in processes.items() if name not in NOT_THE_ENGINE}


def _of_window(run: Mapping[str, Any], verdict: Mapping[str, Any]) -> list[str]:
    found = []
    window = run.get("measured", {}).get("window")
    if window and window["end_ms"] - window["start_ms"] < 1000 * SHORT_WINDOW_S:
        found.append(
            f"Short window, under {SHORT_WINDOW_S:.0f} s: it may not resolve a growth of 1 %. Take"
            " more samples."
        )
    if run.get("asked", {}).get("samples", FEW_SAMPLES) < FEW_SAMPLES:
        found.append(f"Few samples of top, under {FEW_SAMPLES}: CPU and memory are rough.")
    if longer_s := verdict.get("shortest_window_s"):
        found.append(f"A window of {longer_s:.0f} s would probably decide.")
    return found


def _of_machine(folder: Path) -> list[str]:
    busy, stolen = machine_cpu(folder)
    found = []
    if busy is not None and busy > BUSY_PCT:
        found.append(
            f"Busy machine: over {BUSY_PCT:.0f} % of all cores were in use. The engine may have"
            " been short of CPU because of others."
        )
    if stolen is not None and stolen > STOLEN_PCT:
        found.append(f"Noisy machine: the hypervisor took over {STOLEN_PCT:.0f} % of the CPU time.")
    return found


def _total(values: Sequence[float | None]) -> float | None:
    """The sum; None where a part is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _most(memories: Sequence[Mapping[str, Any]]) -> float | None:
    """The largest sum of memory at one sample; samples of all processes are of the same instants.

    Where their numbers differ (a process that came late), the sum of the largest: never too low.
    """
    samples = [memory.get("samples", []) for memory in memories]
    if samples and len({len(of) for of in samples}) == 1 and samples[0]:
        return float(max(map(sum, zip(*samples, strict=True))))
    return _total([memory.get("max") for memory in memories])
