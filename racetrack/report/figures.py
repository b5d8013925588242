"""One run's figures and warnings, flat: from `run.json` and the header lines of `top`."""

import math
import re
from collections.abc import Sequence
from pathlib import Path

from racetrack.analysis import noise
from racetrack.limit_record import LimitRecord
from racetrack.report import verified
from racetrack.report.definitions import FIGURES
from racetrack.results_record import Answers, Cost, Spread, Verdict
from racetrack.run_record import RunRecord

NATIVE, MADE_HERE = "native", "compose, images made here"
# All that a run samples beside the engine's own services, where it does not say which those are.
NOT_THE_ENGINE = ("broker", "redpanda", "loadgen")
# What brings an engine its input beside broker and generator: the same for all engines, so it is
# told in short.
SUPPORT = ("mysql", "registry", "debezium")
SHORT_WINDOW_S, FEW_SAMPLES = 30.0, 10
BUSY_PCT, STOLEN_PCT = 90.0, 1.0
NO_COST = (
    "The engine's CPU and memory were not measured: none of its processes is known to be here."
)

_TOP_CPU = re.compile(r"^%Cpu\(s\):.*?([\d.]+) id,.*?([\d.]+) st", re.MULTILINE)


def figures_of(run: RunRecord, folder: Path) -> dict[str, float | None]:
    """The figures of `definitions.FIGURES`; None for what was not measured or not yet recorded."""
    busy, _ = machine_cpu(folder)
    found: dict[str, float | None] = dict.fromkeys(figure.key for figure in FIGURES)
    found["machine_busy_pct"] = busy
    if results := run.results:
        found |= _costs(list(engine_of(run).values()))
        found |= _lags(results.verdict)
        if results.views:
            oldest = max(results.views, key=lambda view: view.lag_p99_ms)
            found["view_lag_p50_ms"] = _finite(oldest.lag_p50_ms)
            found["view_lag_p99_ms"] = _finite(oldest.lag_p99_ms)
        found |= _reads(results.reads)
        found |= {
            "dt_p50_ms": results.dt_ms.p50,
            "achieved_pageviews_per_s": results.achieved_pageviews_per_s,
            "harness_cpu_pct": results.harness.cpu_pct,
        }
        if results.noise:
            found["foreign_cpu_pct"] = results.noise.sampled.foreign_cpu_pct
            found["kernel_cpu_pct"] = results.noise.sampled.kernel_cpu_pct
            found["steal_pct"] = results.noise.sampled.steal_pct
            if core := results.noise.sampled.core:
                found["core_mib_per_s"] = core.mib_per_s
        if broker := results.processes.get("broker"):
            found["broker_cpu_mean_pct"] = broker.cpu_pct.mean
        if reader := results.processes.get("reader"):
            found["reader_cpu_mean_pct"] = reader.cpu_pct.mean
        support = [of for name, of in results.processes.items() if name in SUPPORT]
        found["support_cpu_mean_pct"] = _total([of.cpu_pct.mean for of in support])
    return found


def _costs(engine: Sequence[Cost]) -> dict[str, float | None]:
    return {
        "cpu_mean_pct": _total([of.cpu_pct.mean for of in engine]),
        "rss_max_gib": _most([of.rss_gib for of in engine]),
        **_held(engine),
        "cpu_s_per_million": _total([of.cpu_s_per_million for of in engine]),
        "rss_growth_gib_per_million": _total([of.rss_growth_gib_per_million for of in engine]),
        "cpu_user_s": _total([of.cpu_user_s for of in engine]),
        "cpu_system_s": _total([of.cpu_system_s for of in engine]),
    }


def _held(engine: Sequence[Cost]) -> dict[str, float | None]:
    """Memory with each page once; the live heap is that of those services that are JVMs."""
    pss, tmpfs = [of.pss_gib for of in engine], [of.tmpfs_gib for of in engine]
    heaps = [of.live_heap_gib for of in engine if of.live_heap_gib is not None]
    return {
        "pss_max_gib": _most([of for of in pss if of]) if all(pss) else None,
        "tmpfs_max_gib": _most([of for of in tmpfs if of]) if all(tmpfs) else None,
        "live_heap_gib": sum(heaps) if heaps else None,
    }


def _lags(verdict: Verdict | None) -> dict[str, float | None]:
    if not verdict:
        return {}
    processed = {"processed_pageviews_per_s": verdict.throughput.processed_per_s}
    if not (lag := verdict.measured):
        return {**processed}
    return {
        **processed,
        "lag_p50_ms": _finite(lag.lag_p50_ms),
        "lag_p99_ms": _finite(lag.lag_p99_ms),
        "lag_max_ms": _finite(lag.lag_max_ms),
        "processing_lag_p50_ms": _finite(lag.processing_lag_p50_ms),
        "processing_lag_p99_ms": _finite(lag.processing_lag_p99_ms),
        "lag_slope_pct": lag.slope.pct,
    }


def _reads(reads: Sequence[Answers]) -> dict[str, float | None]:
    """The slowest of the questions, and the one with the oldest answers."""
    times, ages = [of.time for of in reads if of.time], [of.age for of in reads if of.age]
    found: dict[str, float | None] = {}
    for what, all_of in (("time", times), ("age", ages)):
        if all_of:
            worst = max(all_of, key=lambda of: of.p99_ms)
            found[f"read_{what}_p50_ms"] = _finite(worst.p50_ms)
            found[f"read_{what}_p99_ms"] = _finite(worst.p99_ms)
    return found


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


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


def warnings_of(run: RunRecord, folder: Path) -> tuple[str, ...]:
    """What a reader has to know before believing the figures."""
    verdict = run.results.verdict if run.results else None
    found = [
        *(verdict.warnings if verdict else ()),
        *_of_window(run, verdict),
        *noise.warnings(run),
        *_of_machine(run, folder),
    ]
    if (runtime := runtime_of(run)) in (NATIVE, MADE_HERE):
        found.append(
            f"Runtime {runtime}: Apache Kafka stands in for Redpanda, and Apicurio for its"
            " registry. Don't compare with runs of another runtime."
        )
    if run.results and not engine_of(run):
        found.append(NO_COST)
    return (*found, *verified.caveats(run), *run.caveats)


def runtime_of(described: RunRecord | LimitRecord) -> str:
    """What the services ran as: containers on images made here have another broker in them."""
    made_here = described.runtime == "compose" and described.settings.get("airgap", False)
    return MADE_HERE if made_here else described.runtime


def engine_of(run: RunRecord) -> dict[str, Cost]:
    """Of the sampled services, those that are the engine's own: none if it ran elsewhere."""
    processes = run.results.processes if run.results else {}
    if run.engine_services is None:  # an older run
        return {name: of for name, of in processes.items() if name not in NOT_THE_ENGINE}
    return {name: of for name, of in processes.items() if name in run.engine_services}


def _of_window(run: RunRecord, verdict: Verdict | None) -> list[str]:
    found = []
    if run.measured and run.measured.window.seconds < SHORT_WINDOW_S:
        found.append(
            f"Short window, under {SHORT_WINDOW_S:.0f} s: it may not resolve a growth of 1 %. Take"
            " more samples."
        )
    if run.asked and run.asked.samples < FEW_SAMPLES:
        found.append(f"Few samples of top, under {FEW_SAMPLES}: CPU and memory are rough.")
    if verdict and verdict.shortest_window_s:
        found.append(f"A window of {verdict.shortest_window_s:.0f} s would probably decide.")
    return found


def _of_machine(run: RunRecord, folder: Path) -> list[str]:
    busy, stolen = machine_cpu(folder)
    has_noise = run.results and run.results.noise  # which says more of what was stolen
    found = []
    if busy is not None and busy > BUSY_PCT:
        found.append(
            f"Busy machine: over {BUSY_PCT:.0f} % of all cores were in use. The engine may have"
            " been short of CPU because of others."
        )
    if stolen is not None and stolen > STOLEN_PCT and not has_noise:
        found.append(f"Noisy machine: the hypervisor took over {STOLEN_PCT:.0f} % of the CPU time.")
    return found


def _total(values: Sequence[float | None]) -> float | None:
    """The sum; None where a part is not known."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _most(memories: Sequence[Spread]) -> float | None:
    """The largest sum of memory at one sample; samples of all processes are of the same instants.

    Where their numbers differ (a process that came late), the sum of the largest: never too low.
    """
    samples = [memory.samples for memory in memories]
    if samples and len({len(of) for of in samples}) == 1 and samples[0]:
        return float(max(map(sum, zip(*samples, strict=True))))
    return _total([memory.max for memory in memories])
