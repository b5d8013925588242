"""The lines that a run ends with on the terminal: the published ones, then a summary."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from racetrack.report import verified
from racetrack.report.figures import NO_COST, engine_of
from racetrack.runfolder import shown

TOOK = (("restart_s", "up again in"), ("reload_s", "demo loaded again in"))


def sample_lines(results: Mapping[str, Any]) -> list[str]:
    """`name=…, tag=CPU_PCT, mean=…, sd=…, sem=…, samples=[…]` and `RES_GiB`, for each process."""
    lines = []
    for name, figures in results["processes"].items():
        lines.append(_sample_line(name, "CPU_PCT", figures["cpu_pct"], "{:.1f}", with_max=False))
        lines.append(_sample_line(name, "RES_GiB", figures["rss_gib"], "{:.3f}", with_max=True))
    return lines


def summary(run: Mapping[str, Any], folder: Path) -> list[str]:
    """What a person wants to know at a glance, a line each."""
    results, asked = run["results"], run["asked"]
    dt = results["dt_ms"]
    lines = [
        (
            f"{run['engine']} at {asked['pageviews_per_s']:,} pageviews/s ({run['runtime']}):"
            f" {run['outcome']}"
        ),
        (
            f"  rate        asked {asked['pageviews_per_s']:,}/s,"
            f" achieved {_number(results['achieved_pageviews_per_s'], '{:,.1f}')}/s"
        ),
        (
            f"  pageviews   published {results['published_pageviews']:,},"
            f" seen by the engine {results['processed_pageviews']:,}"
        ),
        _delay(dt),
    ]
    lines[2:2] = [*_verdict(results["verdict"]), *fault_lines(run)]
    if not engine_of(results["processes"]):
        lines.append(f"  {run['engine']:<11} {NO_COST}")
    for name, figures in results["processes"].items():
        lines.append(
            f"  {name:<11} CPU mean {_number(figures['cpu_pct']['mean'], '{:.1f}')} % of a core,"
            f" memory max {_number(figures['rss_gib']['max'], '{:.2f}')} GiB,"
            f" {_number(figures['cpu_s_per_million'], '{:,.2f}')} CPU-s per million pageviews"
        )
    lines.append(
        f"  harness     CPU {results['harness']['cpu_pct']:.1f} % of a core while sampling"
    )
    lines += [f"  caveat      {caveat}" for caveat in run.get("caveats", [])]
    if "verified" in run:
        lines += verified.lines(run["verified"])
    return [*lines, f"  logs        {shown(folder)}"]


def _delay(dt: Mapping[str, Any]) -> str:
    if not dt["updates"]:
        return "  delay       dt_ms n/a: no update in the window"
    return (
        f"  delay       dt_ms mean {_number(dt['mean'], '{:,.0f}')},"
        f" p50 {_number(dt['p50'], '{:,.0f}')}, max {_number(dt['max'], '{:,.0f}')}"
        f" over {dt['updates']} updates"
    )


def _verdict(verdict: Mapping[str, Any]) -> list[str]:
    lines = [f"  verdict     {verdict['reason']}"]
    if measured := verdict["measured"]:
        lines.append(
            f"  lag         p50 {_number(measured['lag_p50_ms'], '{:,.0f}')} ms,"
            f" p99 {_number(measured['lag_p99_ms'], '{:,.0f}')} ms,"
            f" max {_number(measured['lag_max_ms'], '{:,.0f}')} ms"
        )
    if verdict["shortest_window_s"]:
        lines.append(f"              a window of {verdict['shortest_window_s']:.0f} s would decide")
    return [*lines, *(f"  warning     {warning}" for warning in verdict["warnings"])]


def fault_lines(run: Mapping[str, Any]) -> list[str]:
    """What was done on purpose, how long it took to undo, and when lag was normal again."""
    lines = []
    for done, came_back in zip(
        run.get("faults", {}).get("done", []), run["results"].get("faults", []), strict=False
    ):
        took = [f"{name} {_number(done[key], '{:.1f}')} s" for key, name in TOOK if done[key]]
        lags = [
            f"lag of {name} {_back(came_back[name])}"
            for name in ("pageviews", "purchases")
            if name in came_back
        ]
        lines.append(f"  fault       {done['fault']}: {', '.join([*took, *lags])}")
    return lines


def _back(recovery: Mapping[str, Any]) -> str:
    if recovery["after_s"] is None:
        return "never normal again while it was watched"
    worst = _number(recovery["worst_ms"], "{:,.0f}")
    if recovery["after_s"] == 0:
        return f"never above normal (at most {worst} ms)"
    return f"normal again after {recovery['after_s']:.1f} s (at most {worst} ms)"


def _sample_line(
    name: str, tag: str, figures: Mapping[str, Any], form: str, *, with_max: bool
) -> str:
    shown = ("mean", "sd", "sem", "max") if with_max else ("mean", "sd", "sem")
    values = ", ".join(f"{key}={_number(figures[key], form)}" for key in shown)
    samples = ", ".join(form.format(sample) for sample in figures["samples"])
    return f"name={name}, tag={tag}, {values}, samples=[{samples}]"


def _number(value: float | None, form: str) -> str:
    return "n/a" if value is None else form.format(value)
