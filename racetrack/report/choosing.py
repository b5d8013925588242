"""The page docs/choosing.md: which engine for which job, by the published results.

An engine is recommended only where a difference from the others is claimed. What engines are, other
than fast, comes from their classes.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import inf

from racetrack.analysis.claims import Claim
from racetrack.metrics import ACHIEVED, CPU_PER_MILLION, VIEW_LAG_P99
from racetrack.report.render import markdown_table
from racetrack.report.sheet import answers, format_estimate, format_factor
from racetrack.report.standings import Standing, name_of

INTRODUCTION = """# Choosing an engine

<!-- Generated from results/ by `./race publish`. Do not edit. -->

Which engine for which job, by the [results](results.md). Each name links to its figures, versions
and commands.

1. **Take the workload that resembles yours.** The [shop](workloads.md#shop) joins and ranks, keeps
   all events and follows changes; [ads](workloads.md#ads) counts in windows.
2. **Look at the classes.** Results hold for those at the end of each table. Some are settings: what
   a [killed engine does](faults.md), and where Deephaven's views live.
3. **Compare at your rate**, scaled to your cores. A figure holds for the machine in its heading;
   [measure on yours](../README.md#run-it) before you decide.
4. **Freshness is bought by settings**: Deephaven changes its views once a second
   (`DEEPHAVEN_CYCLE_MS`), Flink and Kafka Streams every 100 ms (`FLINK_MINI_BATCH_MS`,
   `KSTREAMS_COMMIT_MS`).

An engine is named (**bold**) if it is better by [one rule](compare.md#when-engines-differ); “not
decided” says why none is. View lag is the age of the oldest event that a client has not received in
a view; p99: it is not above that in 99 % of the time. Capacity is the throughput with a constant
backlog.
"""
LIMITS_MS = (1_000, 5_000)  # of view lag, as those of `how far`


def choosing_page(ranked_places: Sequence[Standing], root: str, engines: Mapping[str, str]) -> str:
    """Return docs/choosing.md. `root` is the path of `results/` relative to the page; `engines` are
    the titles of all engines by their names."""
    files = [result.file_name for standing in ranked_places for result in standing.results]
    labels = {file: label for label, file in enumerate(files, 1)}
    targets = "".join(f"[{label}]: {root}/{file}\n" for file, label in labels.items())
    measured = {result.engine for standing in ranked_places for result in standing.results}
    others = ", ".join(title for name, title in engines.items() if name not in measured)
    missing = f"\nNot measured yet: {others}.\n" if others else ""
    sections = "".join(_section(standing, labels) for standing in ranked_places)
    return f"{INTRODUCTION}{missing}{sections}\n{targets}".rstrip()


def _section(standing: Standing, labels: Mapping[str, int]) -> str:
    links = {
        name_of(result): f"[{name_of(result)}][{labels[result.file_name]}]"
        for result in standing.results
    }
    classes = [
        (text, ", ".join(links[name] for name in names))
        for text, names in standing.by_class.items()
    ]
    tables = (
        (("which engine …", "answer"), [_answer(claim, links) for claim in standing.claims]),
        (("at a rate of", "figures"), list(_at_rates(standing, links))),
        (("view lag p99 stayed within", "up to"), list(_within(standing, links))),
        (("classes differ in", "engines"), classes),
    )
    shown = (f"\n{markdown_table(heading, rows)}" for heading, rows in tables if rows)
    remarks = "".join(f"- {line}\n" for line in answers(standing.rows, ()))
    return f"\n## {standing.heading}\n{''.join(shown)}\n{remarks}"


def _answer(claim: Claim, links: Mapping[str, str]) -> tuple[str, str]:
    """Return a question, and who answers it best."""
    question = f"{claim.metric.best}{f' at {claim.load}' if claim.load else ''}"
    best, *others = claim.order
    values = {name: claim.metric.text(claim.estimates[name].mean) for name in claim.order}
    if not claim.is_decided:
        reasons = dict.fromkeys(pair.why_not for pair in claim.pairs.values() if pair.why_not)
        figures = ", ".join(f"{links[name]} {values[name]}" for name in claim.order)
        return question, f"not decided ({'; '.join(reasons)}): {figures}"
    behind = next(name for name in others if name not in claim.leaders)
    leaders = " or ".join(f"**{links[name]}** ({values[name]})" for name in claim.leaders)
    ties = dict.fromkeys(claim.pairs[best, name].why_not for name in claim.leaders if name != best)
    unclear = f", no difference claimed ({'; '.join(ties)})" if ties else ""
    factor = format_factor(claim.pairs[best, behind].ratio)
    return question, (
        f"{leaders}{unclear}; {links[best]} has {factor} times the {claim.metric.title} of"
        f" {links[behind]} ({values[behind]})"
    )


def _at_rates(standing: Standing, links: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield rates that several engines shared, with their view lag and cost there."""
    for load in standing.loads_of(CPU_PER_MILLION):
        if load.share is not None:
            continue
        for metric in (VIEW_LAG_P99, CPU_PER_MILLION):
            figures = [
                f"{links[name]} {format_estimate(metric, estimate)}"
                for name in standing.names
                if (estimate := standing.estimate(name, metric, load))
            ]
            if len(figures) > 1:
                yield f"{load}: {metric.title}, {metric.unit}", ", ".join(figures)


def _within(standing: Standing, links: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield limits of the view lag, and the highest measured rate of each engine within them."""
    for limit_ms in LIMITS_MS:
        texts = []
        for name in standing.names:
            lags = _lags(standing, name)
            rates = [rate for rate, lag_ms in lags if lag_ms <= limit_ms]
            if not rates:
                texts.append(f"{links[name]}: no measured rate")
                continue
            above = [f"{rate:,.0f}" for rate, lag in lags if lag > limit_ms and rate < max(rates)]
            exception = f", but not at {' and '.join(above)}/s" if above else ""
            texts.append(f"{links[name]} {max(rates):,.0f}/s{exception}")
        if any(_lags(standing, name) for name in standing.names):
            yield f"{limit_ms / 1000:g} s", "; ".join(texts)


def _lags(standing: Standing, name: str) -> list[tuple[float, float]]:
    """Return the rates at which an engine was measured, with its view lag p99 there in ms:
    infinite where it did not hold the load."""
    return sorted(
        (achieved.mean, lag.mean if standing.has_held(name, load) else inf)
        for load in standing.loads_of(VIEW_LAG_P99)
        if (lag := standing.estimate(name, VIEW_LAG_P99, load))
        and (achieved := standing.estimate(name, ACHIEVED, load))
    )
