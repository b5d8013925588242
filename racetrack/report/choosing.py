"""The page docs/choosing.md: which engine for which job, by the published results.

An engine is recommended only where a difference from the others is claimed. What engines are, other
than fast, comes from their classes.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, takewhile
from statistics import fmean
from typing import get_args

from racetrack.analysis.claims import Claim, Estimate, WhyNot
from racetrack.analysis.table import Load
from racetrack.analysis.verdict import RATE_TOLERANCE
from racetrack.metrics import (
    ACHIEVED,
    CAPACITY,
    COUNTED_TWICE,
    CPU_PER_MILLION,
    MEMORY_FULL_AFTER,
    NORMAL_AFTER,
    VIEW_LAG_P99,
    Metric,
    rounded,
    significant,
    sustained,
)
from racetrack.report.render import markdown_table
from racetrack.report.sheet import NOT_RESOLVED, format_estimate, format_factor, remarks, sign_of
from racetrack.report.standings import (
    HALF,
    NOT_MEASURED,
    Column,
    Standing,
    answers_after_kills,
    answers_of,
    caveats_of,
    columns_of,
    families,
    name_of,
)
from racetrack.results.classes import AFTER_A_KILL, TITLES, AfterAKill, differing
from racetrack.workloads.contract import Workload, find_workload

INTRODUCTION = """# Choosing an engine

<!-- Generated from results/ by `./race publish`. Do not edit. -->

Which engine for which job, by the [results](results.md). Each workload is shown on the machine
measured last. Names link to figures and commands.

1. **Take the workload that resembles yours**: that decides more than the engine. The
   [shop](workloads.md#shop) joins and ranks, keeps all events and follows changes;
   [ads](workloads.md#ads) counts by ten seconds{ads}; of [nexmark](nexmark.md), take the query.
2. **Look at the [classes](engines.md#classes)**: engines of different ones do different work. One
   that reads all input again after a [kill](faults.md) takes longer the more there is, and Kafka
   must still have it. Deephaven alone restarts from a
   [class archive](faults.md#comparing-recovery). Flink's `exactly_once` shows rows at checkpoints
   only.
3. **Compare at your rate**: 50 % of capacity is another rate for each engine. Tables show yours, or
   the nearest below and above it. Engines had one core, so
   [measure on your machine](../README.md#run-it) first.
4. **Tuned is not always fresher**: [it](../CONTRIBUTING.md#tune-an-engine) changes Deephaven's
   views more often (100 ms), Flink's and Pathway's less (1 s, so p99 is hardly within 1 s).
5. **State needs room**: Deephaven and Flink keep it on the heap, a third of the machine's memory,
   and end when it is full; Kafka Streams on disk, as Flink may (`FLINK_STATE_BACKEND`); Pathway in
   other memory.
6. **Shares of capacity are measured after saturation**: Deephaven's on fresh stacks, since its heap
   had too little room left, Flink's mostly not. Garbage collection of its full heap takes 7 s, so
   it missed low loads; Pathway uses more CPU then.

**Bold** is better by [one rule](compare.md#when-engines-differ). “~”: interval over ± 15 %; without
one: a single run. A figure without a rate is at its row's. View lag is the age of the oldest event
that a client has not received in the slowest view; p99: 99 % of the time it is lower. Capacity, or
saturation throughput, is what an engine processes while input always waits; a load is held if the
engine is not seen to fall behind in 40 s (search: 90 s) and its p99 stays within 5 s. “≥”:
something other than the engine was the limit; of a recovery time: the lag was not normal (2 s, or
that before the kill) yet at the end. “†”: below 10 % of capacity, where timers decide more than
work, so no best is named. Costs leave out the [broker's](results.md).
"""
NO_RESULTS = " (no results yet)"
BY_QUERY = (VIEW_LAG_P99, CAPACITY, CPU_PER_MILLION)  # what is shown of each query
# Round rates at which engines are shown, each by what was measured there or, up to NEAR times
# further, at the nearest rates. A rate that was asked for is reached within RATE_TOLERANCE.
RATES = (1_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000)
AT_RATES = (VIEW_LAG_P99, CPU_PER_MILLION)
NEAR = 2.5
IDLE = " †"  # the load is below LEAST_SHARE of its capacity
ABOVE = "above capacity"
LIMITS_MS = (1_000, 5_000)  # of view lag, as those of `how far`
FULL_AT_PER_S = 10_000  # at which the time is shown after which a heap is full
FURTHER = 1.1  # a window is named beside a search if its rate was so many times higher


def choosing_page(ranked_places: Sequence[Standing], root: str, engines: Mapping[str, str]) -> str:
    """Return docs/choosing.md. `root` is the path of `results/` relative to the page; `engines` are
    the titles of all engines by their names."""
    shown = _measured_last(families(ranked_places))
    files = [
        result.file_name
        for family in shown
        for result in family[0].results
        if not family[0].queries  # results.md links them
    ]
    labels = {file: label for label, file in enumerate(files, 1)}
    targets = "".join(f"[{label}]: {root}/{file}\n" for file, label in labels.items())
    measured = {result.engine for standing in ranked_places for result in standing.results}
    others = ", ".join(title for name, title in engines.items() if name not in measured)
    missing = f"\nNot measured yet: {others}.\n" if others else ""
    sections = "".join(
        _by_query(family) if family[0].queries else _section(family[0], labels) for family in shown
    )
    workloads = {standing.family[0] for standing in ranked_places}
    introduction = INTRODUCTION.replace("{ads}", "" if "ads" in workloads else NO_RESULTS)
    return f"{introduction}{missing}{sections}\n{targets}".rstrip()


def _measured_last(found: Iterable[Sequence[Standing]]) -> list[Sequence[Standing]]:
    """Return for each workload the family that was measured last."""
    last: dict[str, Sequence[Standing]] = {}
    for family in found:
        workload, _ = family[0].family
        if _until(family) > _until(last.get(workload, ())):
            last[workload] = family
    return list(last.values())


def _until(family: Sequence[Standing]) -> str:
    return max((result.measured_until for one in family for result in one.results), default="")


def _section(standing: Standing, labels: Mapping[str, int]) -> str:
    links = {
        name_of(result): f"[{name_of(result)}][{labels[result.file_name]}]"
        for result in standing.results
    }
    short = "".join(f"- **{title}**: {text}.\n" for title, text in _in_short(standing, links))
    rows = [*_kinds(standing), *_at_rates(standing)]
    # At shares of capacity, last: engines are compared at different rates there.
    claims = sorted(standing.claims, key=lambda claim: bool(claim.load and claim.load.share))
    answers = [_answer(standing, claim, links) for claim in claims]
    tables = (
        (("", *links.values()), rows),
        (("which engine …", "answer"), answers),
    )
    shown = (f"\n{markdown_table(heading, rows)}" for heading, rows in tables if rows)
    lines = (*remarks(standing.rows, standing.claims), *caveats_of(standing.results))
    listed = "".join(f"- {line}\n" for line in lines)
    return f"\n## {standing.heading}\n\n{short}{''.join(shown)}\n{listed}"


def _answer(standing: Standing, claim: Claim, links: Mapping[str, str]) -> tuple[str, str]:
    """Return a question, and who answers it best."""
    question = _question(standing, claim)
    best, *others = claim.order
    without = _not_in_order(standing, claim, links)
    values = {name: _value(standing, claim, name) for name in claim.order}
    if not claim.is_decided:
        reasons = dict.fromkeys(pair.why_not for pair in claim.pairs.values() if pair.why_not)
        figures = ", ".join(f"{links[name]} {values[name]}" for name in claim.order)
        return question, f"not decided ({'; '.join(reasons)}): {figures}{without}"
    behind = next(name for name in others if name not in claim.leaders)
    leaders = " or ".join(f"**{links[name]}** ({values[name]})" for name in claim.leaders)
    unclear = ", no difference between them claimed" if len(claim.leaders) > 1 else ""
    factor = format_factor(claim, best, behind)
    rest = [name for name in others if name not in (*claim.leaders, behind)]
    return question, (
        f"{leaders}{unclear}; {links[best]} has {factor} times the {claim.metric.title} of"
        f" {links[behind]} ({values[behind]})"
        f"{''.join(f'; {links[name]} {values[name]}' for name in rest)}{without}"
    )


def _question(standing: Standing, claim: Claim) -> str:
    """Return what engine a claim asks for; of recoveries, with the faults."""
    if claim.metric == NORMAL_AFTER:
        faults = dict.fromkeys(row.window for row in standing.rows if row.is_recovery)
        return f"{claim.metric.best} from {', '.join(faults)}"
    at = f" at {claim.load}" if claim.load else ""
    own = ", at different rates" if claim.load and claim.load.share else ""
    return f"{claim.metric.best}{at}{own}"


def _not_in_order(standing: Standing, claim: Claim, links: Mapping[str, str]) -> str:
    """Return who was measured, but has no place in the order of a claim, by the reason, with the
    figure if there is one."""
    reasons: dict[str, list[str]] = {}
    alike = {own.get(claim.metric.alike) for own in claim.classes.values()}
    for name in standing.samples.ranked:
        is_alike = standing.samples.classes[name].get(claim.metric.alike) in alike
        if name not in claim.order and is_alike:
            reason = standing.why_not_compared(name, claim.metric, claim.load) or WhyNot.ONE_RUN
            if reason != NOT_MEASURED:
                value = _value(standing, claim, name, reason)
                reasons.setdefault(reason, []).append(f"{links[name]} {value}".strip())
    return "".join(f"; {reason}: {', '.join(those)}" for reason, those in reasons.items())


def _value(standing: Standing, claim: Claim, name: str, known: str = "") -> str:
    """Return a figure with its unit, empty if there is none; at a share of capacity, with the rate
    that this was, and at a load, with the runs that missed it; a recovery time with what had been
    counted before. `known` is what is said of it elsewhere."""
    estimate = standing.estimate(name, claim.metric, claim.load)
    if not estimate:
        return ""
    is_clear = estimate.is_resolved or NOT_RESOLVED in known
    unclear = "" if is_clear else f" ({NOT_RESOLVED})"
    text = f"{sign_of(estimate)}{claim.metric.text(rounded(estimate.mean))}{unclear}"
    achieved = standing.estimate(name, ACHIEVED, claim.load)
    if claim.metric == NORMAL_AFTER:
        return f"{text} {standing.before_the_kill(name)}".strip()
    if claim.load and claim.load.share and achieved:
        text += f" at {significant(achieved.mean)}/s"
    missed = standing.missed(name, claim.load)
    return text if missed in ("", known) else f"{text}, {missed}"


def _kinds(standing: Standing) -> Iterator[Sequence[str]]:
    """Yield the classes in which the engines differ, and how many of their views were right."""
    classes = [result.classes_of_run for result in standing.results]
    for key in differing(classes):
        yield TITLES[key], *(own.get(key, "") for own in classes)
    yield "answers", *map(answers_of, standing.results)


def _at_rates(standing: Standing) -> Iterator[Sequence[str]]:
    """Yield the view lag and the cost of each engine at RATES; rates with the same figures
    together."""
    for metric in AT_RATES:
        at = {
            per_s: tuple(_at_rate(standing, name, metric, per_s) for name in standing.names)
            for per_s in RATES
        }
        for figures, rates in groupby(RATES, at.__getitem__):
            first, *others = rates
            until = f" to {others[-1]:,}" if others else ""
            if any(figure not in ("", ABOVE) for figure in figures):
                yield f"{metric.title} at {first:,}{until}/s, {metric.unit}", *figures


def _at_rate(standing: Standing, name: str, metric: Metric, per_s: float) -> str:
    """Return a figure at a rate, or those at the nearest rates below and above it."""
    rates = {
        load: achieved.mean / per_s
        for load in standing.loads_of(metric)
        if standing.estimate(name, metric, load)
        and (achieved := standing.estimate(name, ACHIEVED, load))
    }
    below = [load for load, rate in rates.items() if 1 / NEAR <= rate <= 1 + RATE_TOLERANCE]
    above = [load for load, rate in rates.items() if 1 - RATE_TOLERANCE <= rate <= NEAR]
    nearest = (
        max(below, key=rates.__getitem__, default=None),
        min(above, key=rates.__getitem__, default=None),
    )
    capacity = standing.estimate(name, CAPACITY, None)
    if capacity and not capacity.at_least and not above and capacity.mean < per_s:
        return ABOVE
    shown = dict.fromkeys(load for load in nearest if load)
    return "; ".join(_at(standing, name, metric, load, per_s) for load in shown)


def _at(standing: Standing, name: str, metric: Metric, load: Load, per_s: float) -> str:
    """Return a figure at a load, with the rate that this was unless it is about `per_s`."""
    text = format_estimate(metric, standing.estimate(name, metric, load))
    achieved = standing.estimate(name, ACHIEVED, load)
    if achieved and not 1 - RATE_TOLERANCE <= achieved.mean / per_s <= FURTHER:
        text += f" at {significant(achieved.mean)}/s"
    idle = IDLE if name in standing.samples.idle_at(load) else ""
    return ", ".join(filter(None, (f"{text}{idle}", standing.missed(name, load))))


def _in_short(standing: Standing, links: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what decides for most, with a text about all engines: how far they go within limits of
    the view lag, what they do after a kill, and for how long they run."""
    for limit_ms in LIMITS_MS if standing.loads_of(VIEW_LAG_P99) else ():
        reached = {
            name: reach
            for name in standing.names
            if (reach := _within(standing, name, limit_ms)) is not None
        }
        ranked = standing.samples.ranked
        furthest_first = sorted(reached, key=lambda name: (name not in ranked, -reached[name][0]))
        texts = [
            f"{'' if name in ranked else 'not ranked: '}{links[name]} {text}"
            for name in furthest_first
            if (text := reached[name][1])
        ]
        none = [links[name] for name in reached if not reached[name][0]]
        ends = [f"at no rate tried: {', '.join(none)}"] if none else []
        yield f"{VIEW_LAG_P99.title} within {limit_ms / 1000:g} s", "; ".join([*texts, *ends])
    killed = "; ".join(_after_kills(standing, links))
    yield "after a kill", killed or "not tried; [classes](engines.md#classes) say what to expect"
    full = [
        f"{links[name]} {_until_full(standing, name, minutes)}"
        for name in standing.names
        if (minutes := standing.estimate(name, MEMORY_FULL_AFTER, None))
    ]
    if full:
        yield "heap full, if it goes on growing so", "; ".join(full)


def _within(standing: Standing, name: str, limit_ms: float) -> tuple[float, str] | None:
    """Return the highest rate that an engine held within a limit, and as a text with the lower
    rates at which runs missed it and, without a search, the next rate that was tried; 0 and no text
    if it held none, None if none was tried."""
    found = standing.estimate(name, sustained(limit_ms), None)
    windows = sorted(_windows(standing, name, limit_ms))
    brief = _highest_window(windows)
    highest = found.mean if found else brief
    if not highest:
        return (0.0, "") if windows else None
    missed = [
        f"{within.count(False)} of {len(within)} runs at {significant(rate)}/s"
        for rate, within in windows
        if rate < highest and not all(within)
    ]
    further = next((rate for rate, _ in windows if rate > highest), None)
    rate, facts = f"{significant(highest)}/s", [f"missed in {', '.join(missed)}"] * bool(missed)
    if found:
        text = f"up to {rate}"
    else:
        text = f"up to {rate}, not at {significant(further)}/s" if further else f"{rate} or more"
        facts.insert(0, "not searched")
    if brief > FURTHER * highest:
        facts.append(f"met up to {significant(brief)}/s in shorter windows")
    return highest, f"{text} ({', '.join(facts)})" if facts else text


def _after_kills(standing: Standing, links: Mapping[str, str]) -> Iterator[str]:
    """Yield who was killed, by what engines do then, and who was not; nothing if nobody was."""
    killed: dict[str, list[str]] = {}
    for result in standing.results:
        name, kind = name_of(result), result.classes_of_run.get(AFTER_A_KILL, "unknown")
        if seconds := standing.estimate(name, NORMAL_AFTER, None):
            figure = f"normal in {format_estimate(NORMAL_AFTER, seconds)} s"
            twice = standing.estimate(name, COUNTED_TWICE, None)
            facts = (
                answers_after_kills(result),
                f"{significant(twice.mean)} events counted twice on average"
                if twice and twice.mean
                else "",
                f"{figure} {standing.before_the_kill(name)}".strip(),
            )
            killed.setdefault(kind, []).append(f"{links[name]} {', '.join(filter(None, facts))}")
    order = [*get_args(AfterAKill), "unknown"]
    for kind in sorted(killed, key=order.index):
        yield f"{kind}: {', '.join(killed[kind])}"
    others = [
        link for name, link in links.items() if not standing.estimate(name, NORMAL_AFTER, None)
    ]
    if killed and others:
        yield f"not killed: {', '.join(others)}"


def _highest_window(windows: Iterable[tuple[float, list[bool]]]) -> float:
    """Return the highest rate at which all windows were within a limit, 0 if there is none. Rates,
    which are sorted, do not count from the first on at which most windows were above the limit."""
    some = takewhile(lambda each: 2 * each[1].count(True) >= len(each[1]), windows)
    return max((rate for rate, within in some if all(within)), default=0.0)


def _windows(standing: Standing, name: str, limit_ms: float) -> list[tuple[float, list[bool]]]:
    """Return the mean rates at which an engine was measured, each with whether it held the load
    within a limit of the view lag in each window."""
    loads: dict[Load, list[tuple[float, bool]]] = {}
    for row in standing.rows:
        rate, lag_ms = row.values.get(ACHIEVED.key), row.values.get(VIEW_LAG_P99.key)
        if row.variant == name and row.load and rate is not None and lag_ms is not None:
            within = row.held and lag_ms <= limit_ms
            loads.setdefault(row.load.asked, []).append((rate, within))
    return [
        (fmean(rate for rate, _ in windows), [within for _, within in windows])
        for windows in loads.values()
    ]


def _until_full(standing: Standing, name: str, minutes: Estimate) -> str:
    """Return after how many events the heap is full, with the time that this takes at
    FULL_AT_PER_S and at half of the capacity."""
    capacity = standing.estimate(name, CAPACITY, None)
    if math.isinf(minutes.mean):
        return "never"
    text = f"{format_estimate(MEMORY_FULL_AFTER, minutes)} min"
    if not capacity:
        return f"after {text} at {HALF}"
    half_per_s = capacity.mean / 2
    events = half_per_s * 60 * minutes.mean
    return (
        f"after {significant(events / 1e6, 2)} million events"
        f" ({significant(events / FULL_AT_PER_S / 60, 2)} min at {FULL_AT_PER_S:,}/s,"
        f" {text} at {significant(half_per_s)}/s)"
    )


def _by_query(family: Sequence[Standing]) -> str:
    """Return the section of a workload's queries: what each asks, and who is best at it, with the
    figures."""
    workload = find_workload(family[0].family[0])
    columns = [column for column in columns_of(family) if column.metric in BY_QUERY]
    heading = ("query", *(column.heading for column in columns))
    rows = [
        (
            "; ".join(_asked(workload, query) for query in place.queries.split(",")),
            *(_best(place, column) for column in columns),
        )
        for place in family
    ]
    claimed = [claim for place in family for claim in place.claims]
    reasons = [pair.why_not for claim in claimed for pair in claim.pairs.values() if pair.why_not]
    facts = []
    if not any(claim.is_decided for claim in claimed):
        facts.append(f"No difference is claimed: {', '.join(dict.fromkeys(reasons))}.")
    if not any(result.variant for place in family for result in place.results):
        facts.append("No engine is tuned here: see 4 above.")
    remark = f"\n{' '.join(facts)}\n" if facts else ""
    return f"\n## {family[0].heading}\n{remark}\n{markdown_table(heading, rows)}"


def _asked(workload: Workload, query: str) -> str:
    """Return the name of a query, with the first sentence of the comment on its SQL."""
    sql = (workload.sql / f"{query}.sql").read_text().replace("\n-- ", " ")
    sentence = sql.removeprefix("-- ").partition(".")[0]
    return f"{query}: {sentence[0].lower()}{sentence[1:]}"


def _best(standing: Standing, column: Column) -> str:
    """Return the engines with their figures, from the best to the worst; those in bold for which a
    difference from the others is claimed."""
    leaders = standing.leaders(column, standing.names)
    known = {
        name: estimate
        for name in standing.names
        if (estimate := standing.estimate(name, column.metric, column.load))
    }
    sign = -1 if column.metric.better == "more" else 1
    missed = {name: standing.missed(name, column.load) for name in known}
    held = [
        name for name in known if standing.samples.is_held((name, column.metric.key, column.load))
    ]
    shown = {name: f"**{name}**" if name in leaders else name for name in held}
    texts = [
        f"{shown[name]} {format_estimate(column.metric, known[name])}"
        + (f" ({missed[name]})" if missed[name] else "")
        for name in sorted(held, key=lambda name: (sign * known[name].mean, name))
    ]
    return ", ".join([*texts, *(f"{name} {missed[name]}" for name in known if name not in held)])
