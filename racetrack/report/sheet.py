"""A report as data: per place, answers in sentences, grids of figures, charts, and notes.

It is made from rows and claims only; `render.py` and `html.py` print it.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from racetrack.analysis.claims import (
    Claim,
    Estimate,
    Key,
    Pair,
    Samples,
    WhyNot,
    by_place,
    claims,
    estimates,
    is_resolved,
    ratios,
)
from racetrack.analysis.intervals import Ratio
from racetrack.analysis.noise import CORE_SPEED_WARNING_PCT, Gate, why_slow
from racetrack.analysis.table import ENGINE_CORES, Load, Place, Row, Table
from racetrack.metrics import (
    AT_RATE,
    BROKER_FOR_ENGINE,
    CAPACITY,
    CORE_SPEED,
    MEMORY_READ,
    METRICS,
    OVERALL,
    QUESTIONS,
    SATURATED_BROKER,
    WRONG_VIEWS,
    Metric,
    metric_of,
    rounded,
    significant,
)
from racetrack.results.classes import TITLES, WORK, differing, ranked

WIDE = 1.5  # a wider interval has ends whose ratio exceeds this
MOST_PLACES = 3
NOT_RESOLVED = "not resolved"
DIFFERENCES, ABOUT_0 = (BROKER_FOR_ENGINE, SATURATED_BROKER), "about 0"
SINGLE_RUNS = "Single runs have no interval. Repeat each run to get one."
INTERVALS = (
    "Geometric means over runs, with 95 % intervals. “~” marks one beyond ± 15 %, and “not"
    " resolved” one that is too wide to print, for want of repeats if nothing else is said. In"
    " ratios, “*” marks a difference that is claimed."
)


@dataclass(frozen=True)
class Grid:
    """A table of texts. The first `left` columns are aligned left. `metrics` are the figures in its
    columns or rows, for an explanation."""

    title: str
    heading: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1
    note: str = ""
    metrics: tuple[Metric, ...] = ()


@dataclass(frozen=True)
class Note:
    """A warning or a condition. `grade` is its heading; `about` are the runs or variants concerned,
    empty if all are."""

    text: str
    grade: str = ""
    about: str = ""

    def __str__(self) -> str:
        return f"{self.text} ({self.about})" if self.about else self.text


@dataclass(frozen=True)
class Section:
    """The part of a report about one place. `claims` are what the answers were made from."""

    title: str
    answers: tuple[str, ...] = ()
    grids: tuple[Grid, ...] = ()
    notes: tuple[Note, ...] = ()
    claims: tuple[Claim, ...] = ()
    estimates: Mapping[Key, Estimate] = field(default_factory=dict)


@dataclass(frozen=True)
class Sheet:
    """A report. `left_out` are texts on what it does not contain; `rows` are exported as flat
    records."""

    kind: str
    sections: tuple[Section, ...]
    rows: tuple[Row, ...] = ()
    left_out: tuple[str, ...] = ()


def sheet(
    table: Table,
    kind: str = "report",
    notes: Mapping[Place, Sequence[Note]] | None = None,
    *,
    baseline: str | None = None,
) -> Sheet:
    """Return the report on a table, with a section for each place. With `baseline`, variants are
    compared with that one only."""
    sections = []
    for place, rows in by_place(table.rows).items():
        labels = dict.fromkeys(row.variant for row in rows)
        meant = [
            Note(f"`{label}`: {table.meanings[label]}")
            for label in labels
            if label in table.meanings
        ]
        own = (notes or {}).get(place, ())
        sections.append(section(rows, [*meant, *own], baseline=baseline))
    missing = [f"Not in this report: {text}" for text in table.missing]
    return Sheet(kind, tuple(sections), table.rows, (*missing, *table.left_out))


def section(
    rows: Sequence[Row], notes: Sequence[Note] = (), *, baseline: str | None = None
) -> Section:
    """Return the section about rows of one place."""
    samples = Samples(rows)
    made = claims(samples, baseline=baseline)
    known = estimates(samples)
    variants = samples.variants
    grids = [
        _at_rates(samples, known, variants),
        _overall(rows, known, variants),
        _classes(samples),
    ]
    if len(variants) > 1:
        grids.append(_ratios(samples, variants, made, baseline or variants[0]))
    exceptions = [*_slowed(rows), *_remarks(rows), *_failures(rows)]
    return Section(
        title=str(rows[0].place),
        answers=tuple(answers(samples, made, variants)),
        grids=tuple(grid for grid in grids if grid.rows),
        notes=(*notes, *exceptions),
        claims=tuple(made),
        estimates=known,
    )


def answers(samples: Samples, made: Sequence[Claim], names: Collection[str]) -> list[str]:
    """Return a sentence for each question, then one on the classes that differ, and one for each
    named variant that did not hold a load, was limited by something else, or is not ranked."""
    rows = [row for row in samples.rows if row.variant in names and row.outcome == "ok"]
    return [
        *map(sentence, made),
        *classes_compared(made),
        *_not_held(samples, dict.fromkeys(row.variant for row in rows)),
        *_limited(rows),
        *_wrong_after_kills(rows),
        *_not_ranked(rows),
    ]


def classes_compared(made: Sequence[Claim]) -> list[str]:
    """Return a sentence on the classes in which compared variants differ; none if they do not."""
    across = dict.fromkeys(title for claim in made for title in claim.across)
    return [f"These answers compare different classes: {', '.join(across)}."] if across else []


def sentence(claim: Claim) -> str:
    """Return the answer to a question: the best variant with its figure and by how much it is
    better, or why no difference is claimed."""
    metric, best = claim.metric, claim.order[0]
    at = f" at {claim.load}" if claim.load else ""
    if not claim.is_decided:
        title = f"{metric.title[0].upper()}{metric.title[1:]}"
        return f"{title}{at}: not decided. {'; '.join(_undecided(claim, best))}."
    others = [name for name in claim.order if name != best]
    behind = next(name for name in others if name not in claim.leaders)
    leaders = " or ".join(f"`{name}`" for name in sorted(claim.leaders))
    unclear = " (no difference between them shown)" if len(claim.leaders) > 1 else ""
    of_best = f"`{best}` " if unclear else ""
    figures = ", ".join(f"`{name}` {_value(claim, name)}" for name in others)
    return (
        f"{leaders} {metric.best}{at}{unclear}: {metric.title} {of_best}{_value(claim, best)},"
        f" {format_factor(claim, best, behind)} × `{behind}`; {figures}."
    )


def _undecided(claim: Claim, best: str) -> Iterator[str]:
    for name in claim.order:
        pair = claim.pairs.get((name, best))
        if name == best:
            yield f"`{best}` {_value(claim, best)}"
        elif pair:
            yield f"`{name}` {_value(claim, name)}, {format_ratio(pair.ratio)} × ({pair.why_not})"
        else:
            yield f"`{name}` {_value(claim, name)} (no ratio)"


def _not_held(samples: Samples, names: Iterable[str]) -> Iterator[str]:
    """Yield a sentence for each variant that did not hold a load in all windows."""
    for variant in names:
        missed = [
            _missed(load, samples.windows(variant, load))
            for load in samples.loads(variant)
            if load != Load(0) and samples.missed(variant, load)
        ]
        if missed:
            yield f"`{variant}` did not hold {', '.join(missed)}."


def _missed(load: Load, rows: Sequence[Row]) -> str:
    """Return a load that was not held, with the rate of a share, and the number of windows."""
    held = [row.held for row in rows]
    facts = [
        f"{significant(fmean(row.load.per_s for row in rows if row.load))}/s" if load.share else "",
        f"{held.count(False)} of {len(held)} windows" if any(held) else "",
    ]
    shown = ", ".join(filter(None, facts))
    return f"{load} ({shown})" if shown else str(load)


def _limited(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence for each variant whose shares are of a capacity that is a lower bound."""
    shared = {row.variant for row in rows if row.load and row.load.asked.share}
    for variant in dict.fromkeys(row.variant for row in rows if row.variant in shared):
        limited = [
            CAPACITY.key in row.at_least
            for row in rows
            if row.variant == variant and CAPACITY.key in row.values
        ]
        if any(limited):
            yield (
                f"`{variant}` was not what limited {limited.count(True)} of {len(limited)}"
                " saturation windows, so its shares of capacity are lower than they say."
            )


def _wrong_after_kills(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence for each variant whose recoveries are not compared."""
    for variant in dict.fromkeys(row.variant for row in rows):
        mine = [row.values for row in rows if row.variant == variant]
        wrong = [values[WRONG_VIEWS.key] for values in mine if WRONG_VIEWS.key in values]
        if any(wrong):
            yield (
                f"Recoveries of `{variant}` are not compared: views were wrong after"
                f" {len(wrong) - wrong.count(0)} of {len(wrong)} kills."
            )


def _not_ranked(rows: Sequence[Row]) -> Iterator[str]:
    classes = {row.variant: row.classes for row in rows}
    for variant in sorted(classes.keys() - ranked(classes)):
        yield (
            f"`{variant}` is not ranked: its views are computed {classes[variant][WORK]}, so its"
            " figures omit the work on views that nobody read."
        )


def _value(claim: Claim, name: str) -> str:
    estimate = claim.estimates[name]
    return f"{'at least ' if estimate.at_least else ''}{claim.metric.text(rounded(estimate.mean))}"


def format_factor(claim: Claim, name: str, to: str) -> str:
    """Format the ratio of two variants with the half-width of its interval, such as `0.61 ± 0.05`;
    with both ends if it is wide, since it is not symmetric then. If one of the two figures is a
    lower bound, their ratio is a bound, too, such as `at most 0.35`, and has no interval."""
    ratio = claim.pairs[name, to].ratio
    mine, others = (claim.estimates[variant].at_least for variant in (name, to))
    if mine != others:
        return f"at {'least' if mine else 'most'} {ratio.ratio:.2g}"
    if ratio.low is None or ratio.high is None:
        return f"{ratio.ratio:.2g}"
    if ratio.high > WIDE * ratio.low:
        return format_ratio(ratio)
    half = (ratio.high - ratio.low) / 2
    places = min(MOST_PLACES, max(0, -math.floor(math.log10(half)))) if half else MOST_PLACES
    return f"{ratio.ratio:.{places}f} ± {half:.{places}f}"


def format_ratio(ratio: Ratio) -> str:
    """Format a ratio with both ends of its interval, if repeats resolve it."""
    if ratio.low is None or ratio.high is None:
        return f"{ratio.ratio:.2f}"
    if not is_resolved(ratio):
        return f"{ratio.ratio:.2g} ({NOT_RESOLVED})"
    return f"{ratio.ratio:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"


def is_noise(metric: Metric, estimate: Estimate) -> bool:
    """Return whether a figure that is a difference is so small that noise took it below 0."""
    return metric in DIFFERENCES and estimate.mean < 0


def sign_of(estimate: Estimate) -> str:
    """Return what stands before a mean: `≥` for a lower bound, `~` if it is imprecise."""
    return f"{'≥ ' if estimate.at_least else ''}{'~' if estimate.is_imprecise else ''}"


def format_estimate(metric: Metric, estimate: Estimate | None) -> str:
    """Format an estimate: `41.0 ± 2.3`, `~41.0 (30.1 to 60.2)` if it is imprecise, `41.0 (not
    resolved)` with the reason, if that is not the number of repeats, or `never in 1 of 2 runs,
    otherwise 41`."""
    if estimate is None:
        return ""
    if is_noise(metric, estimate):
        return ABOUT_0
    mean = f"{sign_of(estimate)}{metric.number(rounded(estimate.mean))}"
    if estimate.at_limit or (estimate.n == 1 and None in (estimate.low, estimate.high)):
        is_sometimes = math.isinf(estimate.mean) and estimate.at_limit < estimate.n
        return f"{mean}{_otherwise(metric, estimate)}" if is_sometimes else mean
    if estimate.low is None or estimate.high is None:
        why = "" if estimate.why_not == WhyNot.MORE_REPEATS else f": {estimate.why_not}"
        return f"{mean} ({NOT_RESOLVED}{why})"
    if estimate.high > WIDE * estimate.low:
        ends = (metric.number(rounded(end)) for end in (estimate.low, estimate.high))
        return f"{mean} ({' to '.join(ends)})"
    return f"{mean} ± {significant((estimate.high - estimate.low) / 2, 2)}"


def _otherwise(metric: Metric, estimate: Estimate) -> str:
    """Return in how many runs a figure was infinite, and what it was in the others."""
    others = (metric.number(rounded(value)) for value in estimate.values if value < math.inf)
    return f" in {estimate.at_limit} of {estimate.n} runs, otherwise {', '.join(others)}"


def _columns(
    known: Mapping[Key, Estimate], metrics: Sequence[Metric], at_load: bool
) -> list[Metric]:
    there = {key for _, key, load in known if (load is not None) == at_load}
    return [metric for metric in metrics if metric.key in there]


def _heading(metric: Metric) -> str:
    return f"{metric.title}\n{metric.unit}"


def _at_rates(samples: Samples, known: Mapping[Key, Estimate], variants: Sequence[str]) -> Grid:
    """Return a grid with a row for each load and variant."""
    columns = _columns(known, AT_RATE, at_load=True)
    verdicts = {
        (load, name): Counter(row.verdict for row in samples.windows(name, load))
        for name in variants
        for load in samples.loads(name)
    }
    order = sorted(verdicts, key=lambda at: (at[0].order, variants.index(at[1])))
    cells = [
        (
            str(load),
            variant,
            str(verdicts[load, variant].total()),
            _verdict(verdicts[load, variant]),
            *(
                format_estimate(metric, known.get((variant, metric.key, load)))
                for metric in columns
            ),
        )
        for load, variant in order
    ]
    several = any(count.total() > 1 for count in verdicts.values())
    heading = ("load", "engine", "runs", "verdict", *map(_heading, columns))
    note = INTERVALS if several else SINGLE_RUNS
    return Grid("At each load", heading, tuple(cells), 2, note, tuple(columns))


def _verdict(counts: Counter[str]) -> str:
    """Return verdicts as text: `kept up`, or `fell behind 2/3, undecided 1/3` if they differ."""
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{kind} {count}/{counts.total()}" for kind, count in counts.most_common())


def _overall(rows: Sequence[Row], known: Mapping[Key, Estimate], variants: Sequence[str]) -> Grid:
    """Return a grid with a row for each variant, with the figures of whole runs, and the number of
    cores to which engines were restricted."""
    others = dict.fromkeys(key for _, key, load in known if load is None and key not in METRICS)
    columns = [*_columns(known, OVERALL, at_load=False), *map(metric_of, others)]
    cores = {row.variant: str(row.facts.get(ENGINE_CORES) or "all") for row in rows if row.facts}
    have_own = any(count != "all" for count in cores.values())
    cells = [
        (
            variant,
            *([cores.get(variant, "")] if have_own else []),
            *(
                format_estimate(metric, known.get((variant, metric.key, None)))
                for metric in columns
            ),
        )
        for variant in variants
        if any((variant, metric.key, None) in known for metric in columns)
    ]
    heading = ("engine", *(["engine’s\ncores"] if have_own else []), *map(_heading, columns))
    return Grid("Whole runs", heading, tuple(cells) if columns else (), 1, "", tuple(columns))


def _classes(samples: Samples) -> Grid:
    """Return a grid with the classes of each variant, if these differ."""
    keys = [key for key in TITLES if any(key in classes for classes in samples.classes.values())]
    rows = [
        (variant, *(samples.classes[variant].get(key, "") for key in keys))
        for variant in samples.variants
    ]
    heading = ("engine", *(TITLES[key] for key in keys))
    is_mixed = bool(differing(samples.classes.values()))
    return Grid("Classes", heading, tuple(rows) if is_mixed else (), len(heading))


def _ratios(samples: Samples, variants: Sequence[str], made: Sequence[Claim], to: str) -> Grid:
    """Return a grid with the ratios of all variants to one, for each figure that decides a
    question."""
    pairs = ratios(samples, to)
    claimed = {
        (pair.of, claim.metric.key, claim.load)
        for claim in made
        for pair in claim.pairs.values()
        if pair.claimed and pair.to == to
    }
    others = [name for name in variants if name != to]
    loads = sorted({load for _, _, load in pairs if load}, key=lambda load: load.order)
    cells = [
        (
            f"{metric.title}{f' at {load}' if load else ''}",
            *(
                _ratio(pairs.get(at), at in claimed)
                for at in ((name, metric.key, load) for name in others)
            ),
        )
        for metric in QUESTIONS
        for load in (None, *loads)
        if any((name, metric.key, load) in pairs for name in others)
    ]
    heading = ("figure", *(f"{name} ÷ {to}" for name in others))
    return Grid("Ratios", heading, tuple(cells), 1, "", QUESTIONS)


def _ratio(pair: Pair | None, is_claimed: bool) -> str:
    if not pair:
        return ""
    return f"{format_ratio(pair.ratio)}{' *' if is_claimed else ''}"


def _slowed(rows: Sequence[Row]) -> list[Note]:
    """Return warnings if the machine was slower in some windows: its cores, or its memory, which
    other virtual machines may use, too."""
    speeds = [speed for row in rows if (speed := row.values.get(CORE_SPEED.key))]
    slow = [speed for speed in speeds if speed < CORE_SPEED_WARNING_PCT / 100 * max(speeds)]
    texts = []
    if slow:
        slowest, fastest = (100 * pct / max(speeds) for pct in (min(slow), max(slow)))
        texts.append(
            f"In {len(slow)} of {len(speeds)} windows cores ran at {slowest:.0f} to {fastest:.0f} %"
            " of their speed in the fastest: the machine may have been shared (docs/noise.md)."
        )
    usable = [row for row in rows if row.outcome == "ok"]
    reads_ns = [ns for row in usable if (ns := row.values.get(MEMORY_READ.key))]
    slow = [ns for ns in reads_ns if why_slow(ns, min(reads_ns), Gate())]
    if slow:
        texts.append(
            f"In {len(slow)} of {len(reads_ns)} windows a read from memory took up to"
            f" {max(slow) / min(reads_ns):.1f} times as long as in the quietest: another machine"
            " may have used it (docs/noise.md)."
        )
    return [Note(text) for text in texts]


def _remarks(rows: Sequence[Row]) -> list[Note]:
    """Return what is to be known about windows, such as the reason of a lower bound."""
    texts = [
        f"`{row.variant}` gets further than its capacity says: {row.remark}"
        if CAPACITY.key in row.at_least
        else f"`{row.variant}`, {row.window}: {row.remark}"
        for row in rows
        if row.remark and row.outcome == "ok"
    ]
    return [Note(text) for text in dict.fromkeys(texts)]


def _failures(rows: Sequence[Row]) -> list[Note]:
    return [
        Note(
            f"`{row.variant}`{f', {row.window}' if row.window else ''}: {first_line(row.outcome)}",
            "Left out",
            row.tag,
        )
        for row in rows
        if row.outcome != "ok"
    ]


def first_line(text: str) -> str:
    """Return the first line of a text."""
    return text.splitlines()[0] if text else ""


def as_figures(section: Section) -> list[dict[str, Any]]:
    """Return the estimates of a section as flat mappings, with what is claimed about them."""
    leaders = {
        (name, claim.metric.key, claim.load): name in claim.leaders
        for claim in section.claims
        for name in claim.order
    }
    return [
        {
            "variant": variant,
            "metric": key,
            "unit": metric_of(key).unit,
            "requested_events_per_s": load.per_s if load and load.share is None else None,
            "share_of_capacity": load.share if load else None,
            "mean": estimate.mean if math.isfinite(estimate.mean) else None,
            "low": estimate.low,
            "high": estimate.high,
            "n": estimate.n,
            "is_lower_bound": estimate.at_least,
            "is_imprecise": estimate.is_imprecise,
            "not_resolved": estimate.why_not,
            "leads": leaders.get((variant, key, load)),
        }
        for (variant, key, load), estimate in section.estimates.items()
    ]


def as_claims(section: Section) -> list[dict[str, Any]]:
    """Return the claims of a section as mappings: each question, its order, and its pairs."""
    return [
        {
            "metric": claim.metric.key,
            "load": str(claim.load) if claim.load else None,
            "order": claim.order,
            "leaders": claim.leaders,
            "classes_differ": claim.across,
            "pairs": [
                {
                    "of": pair.of,
                    "to": pair.to,
                    "ratio": pair.ratio.ratio,
                    "low": pair.ratio.low,
                    "high": pair.ratio.high,
                    "p": pair.p,
                    "claimed": pair.claimed,
                    "why_not": pair.why_not,
                }
                for pair in claim.pairs.values()
            ],
        }
        for claim in section.claims
    ]
