"""The page docs/choosing.md: which engine for which job, by the published results.

An engine is recommended only where a difference from the others is claimed. What engines are, other
than fast, comes from their classes.
"""

from collections.abc import Iterator, Mapping, Sequence

from racetrack.analysis.claims import Claim
from racetrack.metrics import ACHIEVED, VIEW_LAG_P99
from racetrack.report.render import markdown_table
from racetrack.report.sheet import format_factor
from racetrack.report.standings import Standing, name_of
from racetrack.results.classes import TITLES

INTRODUCTION = """# Choosing an engine

<!-- Generated from results/ by `./race publish`. Do not edit. -->

Which engine for which job, by the [results](results.md). Each name links to its figures, versions
and commands.

1. **Take the workload that resembles yours.** The [shop](workloads.md#shop) joins and ranks, keeps
   all events and follows changes; [ads](workloads.md#ads) counts in windows. The order of engines
   differs between them.
2. **Rule out by class.** Where must results be, and what may happen after a kill? No speed makes up
   for that.
3. **Compare at your rate**, scaled to your cores. A figure holds for the machine in its heading;
   [measure on yours](../README.md#run-it) what decides.

An engine is named if it is better by [one rule](compare.md#when-engines-differ); “not decided” says
why none is.
"""
LIMITS_MS = (1_000, 5_000)  # of view lag, as those of `how far`


def choosing_page(found: Sequence[Standing], root: str) -> str:
    """Return docs/choosing.md. `root` is the path of `results/` relative to the page."""
    files = [one.file_name for of in found for one in of.results]
    labels = {file: label for label, file in enumerate(files, 1)}
    targets = "".join(f"[{label}]: {root}/{file}\n" for file, label in labels.items())
    return f"{INTRODUCTION}{''.join(_section(of, labels) for of in found)}\n{targets}".rstrip()


def _section(of: Standing, labels: Mapping[str, int]) -> str:
    links = {name_of(one): f"[{name_of(one)}][{labels[one.file_name]}]" for one in of.results}
    tables = (
        (("which engine …", "answer"), [_answer(one, links) for one in of.claims]),
        (("view lag p99 stayed within", "up to"), list(_within(of, links))),
        (("engines differ in", "engines"), list(_by_class(of, links))),
    )
    shown = (f"\n{markdown_table(heading, rows)}" for heading, rows in tables if rows)
    return f"\n## {of.heading}\n{''.join(shown)}"


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
    factor = format_factor(claim.pairs[best, behind].ratio)
    return question, f"{leaders}: {factor} × {links[behind]} ({values[behind]})"


def _within(of: Standing, links: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield limits of the view lag, and the highest measured rate of each engine within them."""
    for limit_ms in LIMITS_MS:
        rates = {name: _rate_within(of, name, limit_ms) for name in of.names}
        reached = {name: rate for name, rate in rates.items() if rate is not None}
        order = sorted(reached, key=lambda name: -reached[name])
        texts = [f"{links[name]} {reached[name]:,.0f}/s" for name in order]
        if none := [links[name] for name in of.names if name not in reached]:
            texts.append(f"at no measured load: {', '.join(none)}")
        if reached:
            yield f"{limit_ms / 1000:g} s", "; ".join(texts)


def _rate_within(of: Standing, name: str, limit_ms: int) -> float | None:
    """Return the highest rate at which an engine's view lag stayed within a limit, as it did at all
    lower ones that were measured; None if there is none."""
    measured = sorted(
        (achieved.mean, lag.mean <= limit_ms and of.has_held(name, load))
        for load in of.loads_of(VIEW_LAG_P99)
        if (lag := of.estimate(name, VIEW_LAG_P99, load))
        and (achieved := of.estimate(name, ACHIEVED, load))
    )
    highest = None
    for rate, is_within in measured:
        if not is_within:
            break
        highest = rate
    return highest


def _by_class(of: Standing, links: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each class in which the engines differ, with those of that class."""
    classes = {name_of(one): one.classes_of_run for one in of.results}
    for key, title in TITLES.items():
        values = dict.fromkeys(own[key] for own in classes.values() if key in own)
        for value in values if len(values) > 1 else ():
            names = (links[name] for name, own in classes.items() if own.get(key) == value)
            yield f"{title}: {value}", ", ".join(names)
