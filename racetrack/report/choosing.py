"""The page docs/choosing.md: which engine for which job, by the published results.

An engine is recommended only where a difference from the others is claimed. What engines are, other
than fast, comes from their classes.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import takewhile

from racetrack.analysis.claims import Claim, Estimate
from racetrack.analysis.live_heap import events_until_full
from racetrack.analysis.table import Load
from racetrack.analysis.verdict import RATE_TOLERANCE
from racetrack.metrics import (
    ACHIEVED,
    CAPACITY,
    COUNTED_TWICE,
    CPU_PER_MILLION,
    MEMORY_FULL_AFTER,
    NEVER,
    NORMAL_AFTER,
    VIEW_LAG_P99,
    Metric,
    rounded,
    significant,
    sustained,
)
from racetrack.report.render import markdown_table
from racetrack.report.sheet import (
    NOT_RESOLVED,
    classes_compared,
    format_estimate,
    format_factor,
    sign_of,
)
from racetrack.report.standings import (
    BELOW_SEARCH,
    HALF,
    NOT_MEASURED,
    Column,
    Standing,
    answers_of,
    columns_of,
    families,
    few_names,
    name_of,
)
from racetrack.results.published import EngineResult
from racetrack.workloads.contract import Workload, find_workload

INTRODUCTION = """# Choosing an engine

<!-- Generated from results/ by `./race publish`. Do not edit. -->

Which engine for which job, by the [results](results.md). Each workload is shown on the machine
measured last.

1. **Take the workload that resembles yours**: the [shop](workloads.md#shop) joins and ranks, keeps
   all events and follows changes; [ads](workloads.md#ads) counts by campaign and ten
   seconds{ads}; of [nexmark](nexmark.md), take the query.
2. **Look at the [classes](engines.md#classes)**: engines of different ones do different work. One
   that reads all input again after a [kill](faults.md) takes longer the more there is, and Kafka
   must still have it. Deephaven alone restarts from a
   [class archive](faults.md#comparing-recovery).
3. **See when the heap is full**: then the engine ends. Deephaven and Flink keep what they need for
   their views there, on a third of the machine's memory; Kafka Streams and Spark mostly on disk, as
   Flink may (`FLINK_STATE_BACKEND`); Pathway in other memory. “Never”: live objects grew by under
   1 % of the heap.
4. **Compare at your rate**, in the second table: 50 % of capacity is another rate for each engine.
   Engines had one core, so [measure on your machine](../README.md#run-it) first.
5. **Timers decide freshness**: Deephaven, Storm and Apex change views once a second (tuned: every
   0.1 s), Flink and Pathway every 0.1 s (tuned: once a second); PostgreSQL is asked once a second.
   Once a second means a p99 of about 1 s.
6. **Saturation fills the heap**: in windows after it, on the shop, Flink collected garbage for up
   to 7 s, and Pathway used more CPU time. Exceptions are below each first table; nexmark and
   searches whose events fit into the heap were also measured after it.

**View lag** is how long after an event is due a client has it in the slowest [traced](views.md)
view; p99: 99 % of the time it is lower. **Cost** is CPU time for a million events, without the
[broker's](results.md): 10 CPU-s/million at 100,000/s take a core. Spark takes a core at any rate.
**Capacity**, or saturation throughput, is what an engine processes while input always waits. A load
is held if the engine is not seen to fall behind in 40 s (short runs: 10 s, searches: 90 s) and its
p99 stays within 5 s.

Engines in **bold** are better than the others compared, by
[one rule](compare.md#when-engines-differ); ratios are of the repeats that both have. “16,300 to
27,500”: within the limit at the first rate; at the second above it, or falling behind. “~”:
interval over ± 15 %, or unknown. “≥”: the engine failed, or was not the limit; of a recovery time:
the lag was not normal (2 s, or that before the kill) at the end. “†”: below 10 % of capacity, where
timers decide.
"""
TUNED = "tuned"  # what names of tuned variants begin with
QUICK = "_quick"  # end of the names of experiments by the plan `quick`
NO_RESULTS, FEWER_RUNS = " (no results yet)", "fewer runs"
BY_QUERY = (VIEW_LAG_P99, CAPACITY, CPU_PER_MILLION)  # what is compared by query
# Rates at or near which engines are shown. A rate that was asked for is reached within
# RATE_TOLERANCE.
RATES = (1_000, 5_000, 10_000, 20_000, 50_000, 100_000, 300_000)
AT_RATES = (VIEW_LAG_P99, CPU_PER_MILLION)
IDLE = " †"  # the load is below LEAST_SHARE of its capacity
ABOVE, NONE_HELD = "above capacity", "none that was tried"
LIMITS_MS = (1_000, 5_000)  # of view lag, as those of `how far`
FULL_AT_PER_S = 10_000  # at which the time is shown after which a heap is full
FURTHER = 1.1  # rates that differ by a lower factor are about the same


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
    """Return the section of a workload: its engines, those that go furthest first."""
    files = {name_of(result): result.file_name for result in standing.results}
    order = sorted(files, key=lambda name: _how_far(standing, name))
    links = {name: f"[{name}][{labels[files[name]]}]" for name in order}
    overview, at_rates = _overview(standing, links), _at_rates(standing, links)
    return f"\n## {standing.heading}\n{overview}{at_rates}{_answers(standing, links)}"


def _answers(standing: Standing, links: Mapping[str, str]) -> str:
    """Return who answers each question best; those at shares of capacity last, since engines are
    compared at different rates there."""
    claims = sorted(standing.claims, key=lambda claim: bool(claim.load and claim.load.share))
    decided = [claim for claim in claims if claim.is_decided]
    rows = [(_question(standing, claim), _answer(standing, claim, links)) for claim in decided]
    table = f"\n{markdown_table(('which engine …', 'answer'), rows)}" if rows else ""
    others = [
        f"{_question(standing, claim)} ({', '.join(_reasons(claim))})"
        for claim in claims
        if not claim.is_decided
    ]
    undecided = f"Not decided: which engine {'; '.join(others)}." if others else ""
    return table + _paragraphs((*classes_compared(decided), undecided))


def _paragraphs(texts: Iterable[str]) -> str:
    return "".join(f"\n{text}\n" for text in texts if text)


def _answer(standing: Standing, claim: Claim, links: Mapping[str, str]) -> str:
    """Return who is best and by how much, and who could not be compared."""
    best, *others = claim.order
    behind = next(name for name in others if name not in claim.leaders)
    values = {name: _value(standing, claim, name) for name in (*claim.leaders, behind)}
    leaders = " or ".join(f"**{links[name]}** ({values[name]})" for name in claim.leaders)
    unclear = ", no difference between them claimed" if len(claim.leaders) > 1 else ""
    whose = f"{links[best]} has " if unclear else ""
    return (
        f"{leaders}{unclear}; {whose}{format_factor(claim, best, behind)} times the value of the"
        f" next, {links[behind]} ({values[behind]}){_not_in_order(standing, claim, links)}"
    )


def _reasons(claim: Claim) -> Iterable[str]:
    """Return why no difference is claimed."""
    return dict.fromkeys(pair.why_not for pair in claim.pairs.values() if pair.why_not)


def _question(standing: Standing, claim: Claim) -> str:
    """Return what engine a claim asks for; of recoveries, with the faults."""
    if claim.metric == NORMAL_AFTER:
        # Leave out the load: it is a share of what a scout counted. The rate is shown beside it.
        windows = (row.window for row in standing.rows if row.is_recovery)
        faults = dict.fromkeys(window.partition(" at ")[0] for window in windows)
        return f"{claim.metric.best} from {', '.join(faults)}"
    at = f" at {claim.load}" if claim.load else ""
    own = ", at different rates" if claim.load and claim.load.share else ""
    return f"{claim.metric.best}{at}{own}"


def _not_in_order(standing: Standing, claim: Claim, links: Mapping[str, str]) -> str:
    """Return who was measured, but has no place in the order of a claim, by the reason."""
    reasons: dict[str, list[str]] = {}
    alike = {own.get(claim.metric.alike) for own in claim.classes.values()}
    for name in standing.samples.ranked:
        is_alike = standing.samples.classes[name].get(claim.metric.alike) in alike
        if name not in claim.order and is_alike:
            at = name, claim.metric, claim.load
            reason = standing.why_not_compared(*at) or standing.other_order(*at) or FEWER_RUNS
            if claim.load or reason != NOT_MEASURED:
                reasons.setdefault(reason, []).append(links[name])
    return "".join(f"; {reason}: {few_names(those)}" for reason, those in reasons.items())


def _value(standing: Standing, claim: Claim, name: str) -> str:
    """Return a figure with its unit, empty if there is none; at a share of capacity, with the rate
    that this was, and at a load, with the runs that missed it; a recovery time with what had been
    counted before."""
    estimate = standing.estimate(name, claim.metric, claim.load)
    if not estimate:
        return ""
    unclear = "" if estimate.is_resolved else f" ({NOT_RESOLVED})"
    text = f"{sign_of(estimate)}{claim.metric.text(rounded(estimate.mean))}{unclear}"
    achieved = standing.estimate(name, ACHIEVED, claim.load)
    if claim.metric == NORMAL_AFTER:
        return f"{text} {standing.before_the_kill(name)}".strip()
    if claim.load and claim.load.share and achieved:
        text += f" at {significant(achieved.mean)}/s"
    return ", ".join(filter(None, (text, standing.missed(name, claim.load))))


def _overview(standing: Standing, links: Mapping[str, str]) -> str:
    """Return a table of what decides for most, with a row for each engine: how far it goes, within
    limits of the view lag and at all, what it does after a kill, for how long it runs, and its
    classes."""
    of_name = {name_of(result): result for result in standing.results}
    ranked = standing.samples.ranked
    limits = (f"{VIEW_LAG_P99.title} within {ms / 1000:g} s up to, /s" for ms in LIMITS_MS)
    most, full = f"{CAPACITY.title}, {CAPACITY.unit}", MEMORY_FULL_AFTER.title
    heading = ("engine", *limits, most, "answers, and recovery from a kill", full, "class")
    rows = [
        (
            f"{link}{'' if name in ranked else ' (not ranked)'}",
            *(_within(standing, name, limit_ms)[1] for limit_ms in LIMITS_MS),
            _brief(CAPACITY, standing.estimate(name, CAPACITY, None)),
            _answers_and_recovery(standing, of_name[name]),
            _until_full(standing, name),
            standing.class_of(of_name[name]),
        )
        for name, link in links.items()
    ]
    tuned = {result.title for result in standing.results if result.variant.startswith(TUNED)}
    others = dict.fromkeys(r.title for r in standing.results if tuned and r.title not in tuned)
    brief = [
        name
        for name in links
        if any(window.experiment.endswith(QUICK) for window in of_name[name].windows)
    ]
    remarks = (
        f"No tuned results: {', '.join(others)}." if others else "",
        f"From short runs, soon after the start: {', '.join(brief)}." if brief else "",
        _after_saturation(standing, links),
    )
    return f"\n{markdown_table(heading, rows)}{_paragraphs(remarks)}"


def _after_saturation(standing: Standing, names: Iterable[str]) -> str:
    """Return that shares of capacity were measured after saturation, on the same stack, and whose
    were not; empty if none were."""
    samples = standing.samples
    if not samples.after_saturation:
        return ""
    others = []
    for name in names:
        shares = [load for load in samples.loads(name) if load.share]
        fresh = [load for load in shares if (name, load) not in samples.after_saturation]
        if fresh:
            others.append(name if fresh == shares else f"some of {name}")
    exceptions = f", except those of {', '.join(others)}" if others else ""
    return f"Shares of capacity were measured after saturation{exceptions}."


def _how_far(standing: Standing, name: str) -> tuple[bool, list[float], str]:
    """Return a key that sorts those first that are ranked and go furthest."""
    reached = [-_within(standing, name, limit_ms)[0] for limit_ms in LIMITS_MS]
    return name not in standing.samples.ranked, reached, name


def _within(standing: Standing, name: str, limit_ms: float) -> tuple[float, str]:
    """Return the highest rate that an engine held within a limit in most runs, and as a text with
    the rates at which runs missed it and, without a search, the next rate that was tried; 0 if it
    held none. A search does not count if most windows at a lower rate were above the limit."""
    metric = sustained(limit_ms)
    found = standing.estimate(name, metric, None)
    windows = sorted(_windows(standing, name, limit_ms))
    tried = list(takewhile(lambda each: 2 * each[1].count(False) <= len(each[1]), windows))
    brief = max((rate for rate, within in tried if 2 * sum(within) > len(within)), default=0.0)
    above = next((rate for rate, _ in windows[len(tried) :]), math.inf)
    is_found = found is not None and found.mean < above
    highest = found.mean if found and is_found else brief
    if not highest:
        none = BELOW_SEARCH if standing.is_below_search(name, metric) else NONE_HELD
        return 0.0, none if windows else NOT_MEASURED
    further = next((rate for rate, _ in windows if rate > highest), None)
    until = f"to {significant(further)}" if further else "or more"
    missed = [
        f"{within.count(False)} of {len(within)} runs at {significant(rate)}/s"
        for rate, within in windows
        if rate <= highest and not all(within)
    ]
    is_further = brief > (1 + metric.within) * highest
    facts = (
        f"missed in {', '.join(missed)}" if missed else "",
        f"met up to {significant(brief)}/s in shorter windows" if is_further else "",
        f"{_brief(metric, found)}/s in a search" if found and not is_found else "",
    )
    text = _brief(metric, found) if is_found else f"{significant(highest)} {until}"
    return highest, f"{text} ({', '.join(filter(None, facts))})" if any(facts) else text


def _answers_and_recovery(standing: Standing, result: EngineResult) -> str:
    """Return how many views were right, and how an engine recovered from kills."""
    name = name_of(result)
    seconds = standing.estimate(name, NORMAL_AFTER, None)
    if not seconds:
        return f"{answers_of(result)}; not killed"
    twice = standing.estimate(name, COUNTED_TWICE, None)
    counted = [significant(each) for each in sorted(twice.values)] if twice and twice.mean else []
    facts = (
        answers_of(result),
        f"{counted[0]} to {counted[-1]} events counted twice" if counted else "",
        f"normal in {format_estimate(NORMAL_AFTER, seconds)} s"
        f" {standing.before_the_kill(name, is_brief=True)}".strip(),
    )
    return "; ".join(filter(None, facts))


def _until_full(standing: Standing, name: str) -> str:
    """Return after how many events the heap is full, with the time that this takes at
    FULL_AT_PER_S."""
    minutes = standing.estimate(name, MEMORY_FULL_AFTER, None)
    capacity = standing.estimate(name, CAPACITY, None)
    if not minutes:
        return NOT_MEASURED
    text = format_estimate(MEMORY_FULL_AFTER, minutes)
    if text == NEVER:
        return text
    if math.isinf(minutes.mean) or not capacity:
        return f"{text} min at {HALF}"
    events = events_until_full(minutes.mean, capacity.mean)
    return (
        f"{sign_of(minutes)}{significant(events / 1e6, 2)} million events"
        f" ({events / FULL_AT_PER_S / 60:,.0f} min at {FULL_AT_PER_S:,}/s)"
    )


def _at_rates(standing: Standing, links: Mapping[str, str]) -> str:
    """Return a table of the view lag and the cost of each engine at those RATES at which any was
    measured; empty if none was."""
    at = {per_s: [_at_rate(standing, name, per_s) for name in links] for per_s in RATES}
    shown = {per_s: cells for per_s, cells in at.items() if {*cells} - {NOT_MEASURED, ABOVE}}
    columns = [(f"{per_s:,}/s", *cells) for per_s, cells in shown.items()]
    what = " / ".join(f"{metric.title}, {metric.unit}" for metric in AT_RATES)
    heading, *rows = zip((f"{what}, at or near", *links.values()), *columns, strict=True)
    return f"\n{markdown_table(heading, rows)}" if columns else ""


def _at_rate(standing: Standing, name: str, per_s: float) -> str:
    """Return the figures at the nearest rates below and above one of RATES to which they are nearer
    than to the others. A share of the capacity is left out where a rate is as near."""
    achieved = {
        load: estimate.mean
        for load in standing.loads_of(ACHIEVED)
        if any(standing.estimate(name, metric, load) for metric in AT_RATES)
        and (estimate := standing.estimate(name, ACHIEVED, load))
    }
    asked = [mean for load, mean in achieved.items() if not load.share]
    rates = {
        load: mean / per_s
        for load, mean in achieved.items()
        if min(RATES, key=lambda rate: abs(math.log(mean / rate))) == per_s
        and not (load.share and any(1 / FURTHER <= mean / rate <= FURTHER for rate in asked))
    }
    capacity = standing.estimate(name, CAPACITY, None)
    if not rates and capacity and not capacity.at_least and capacity.mean < per_s:
        return ABOVE
    below = [load for load, rate in rates.items() if rate <= FURTHER]
    above = [load for load, rate in rates.items() if rate >= 1 - RATE_TOLERANCE]
    nearest = (
        max(below, key=rates.__getitem__, default=None),
        min(above, key=rates.__getitem__, default=None),
    )
    shown = dict.fromkeys(load for load in nearest if load)
    about = per_s if len(shown) == 1 else None
    return "; ".join(_at(standing, name, load, about) for load in shown) or NOT_MEASURED


def _at(standing: Standing, name: str, load: Load, per_s: float | None) -> str:
    """Return the figures at a load, after the rate that this was unless it is about `per_s`."""
    text = " / ".join(_brief(metric, standing.estimate(name, metric, load)) for metric in AT_RATES)
    achieved = standing.estimate(name, ACHIEVED, load)
    is_about = per_s and achieved and 1 - RATE_TOLERANCE <= achieved.mean / per_s <= FURTHER
    if achieved and not is_about:
        text = f"{significant(achieved.mean)}/s: {text}"
    idle = IDLE if name in standing.samples.idle_at(load) else ""
    return ", ".join(filter(None, (f"{text}{idle}", standing.missed(name, load))))


def _brief(metric: Metric, estimate: Estimate | None) -> str:
    """Format an estimate without its interval, with `~` unless that is known and narrow."""
    if not estimate:
        return NOT_MEASURED
    is_unknown = None in (estimate.low, estimate.high) and not estimate.is_imprecise
    sign = f"{sign_of(estimate)}{'~' if is_unknown else ''}"
    return f"{sign}{metric.number(rounded(estimate.mean))}"


def _windows(standing: Standing, name: str, limit_ms: float) -> list[tuple[float, list[bool]]]:
    """Return the mean rates at which an engine was measured, each with whether it held the load
    within a limit of the view lag in each window. A window that missed it while the harness was
    busy is unclear, and so is a load with such windows that most did not hold."""
    found = []
    for load in standing.samples.loads(name):
        rows = [
            row for row in standing.samples.windows(name, load) if VIEW_LAG_P99.key in row.values
        ]
        within = [row.held and row.values[VIEW_LAG_P99.key] <= limit_ms for row in rows]
        clear = [
            is_within
            for is_within, row in zip(within, rows, strict=True)
            if is_within or not row.harness_was_busy
        ]
        has_unclear, most_held = len(clear) < len(rows), 2 * sum(within) > len(rows)
        rate = standing.estimate(name, ACHIEVED, load)
        if rate and clear and (most_held or not has_unclear):
            found.append((rate.mean, clear))
    return found


def _by_query(family: Sequence[Standing]) -> str:
    """Return the section of a workload's queries: what each asks, and who is best at it, with the
    figures."""
    workload = find_workload(family[0].family[0])
    columns = [column for column in columns_of(family) if column.metric in BY_QUERY]
    heading = ("query", *(column.heading for column in columns), MEMORY_FULL_AFTER.title)
    rows = [
        (
            "; ".join(_asked(workload, query) for query in place.queries.split(",")),
            *(_best(place, column) for column in columns),
            "; ".join(f"{name}: {_until_full(place, name)}" for name in place.names),
        )
        for place in family
    ]
    claimed = [claim for place in family for claim in place.claims]
    reasons = [pair.why_not for claim in claimed for pair in claim.pairs.values() if pair.why_not]
    facts = []
    if not any(claim.is_decided for claim in claimed):
        facts.append(f"No difference is claimed: {', '.join(dict.fromkeys(reasons))}.")
    if not any(result.variant for place in family for result in place.results):
        facts.append("No engine is tuned: see 5 above.")
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
