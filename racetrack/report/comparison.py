"""Output of a comparison: a sentence for each question, and a table."""

import math
from collections.abc import Sequence
from typing import Any

from rich.table import Table as Grid

from racetrack.analysis.comparison import (
    AT_RATES,
    BASE,
    CAPACITY,
    CPU,
    LAG_P99,
    MEMORY,
    OVERALL,
    PROCESSING_LAG,
    READ_TIME,
    Answer,
    Metric,
    Side,
    answers,
    difference,
    is_resolved,
    mean_of,
)
from racetrack.analysis.intervals import Ratio, Summary
from racetrack.report.export import Document, FlatRecord, document_of_answers
from racetrack.report.figures import format_interval, format_significant
from racetrack.results.repeats import QUICK, ComparisonRecord, RepeatedRuns
from racetrack.terminal import as_text

# Beginning of the sentence about the best side, by metric.
FIRST = {
    LAG_P99: "`{}` is the freshest{at}",
    READ_TIME: "`{}` answers fastest{at}",
    CAPACITY: "`{}` gets furthest",
    MEMORY: "`{}` needs the least memory{at}",
    BASE: "`{}` costs the least when idle",
}
TABLE_WIDTH = 120
MOST_PLACES = 3
WIDE = 1.5  # a wider interval has ends whose ratio exceeds this


def sentences(sides: Sequence[Side]) -> list[str]:
    """Return a sentence for each question, with 95 % intervals. It is "no difference found" if the
    repeats show no difference, or a difference too small for the harness to resolve."""
    found = answers(sides)
    lines = [_sentence(answer, sides) for answer in found]
    behind = [
        f"`{side.label}` did not keep up with {_rates(side.not_sustained)}."
        for side in sides
        if side.not_sustained
    ]
    alone = len({answer.metric for answer in found} & {CPU, LAG_P99}) == 0 and len(sides) > 1
    return [
        *lines,
        *behind,
        *(["There is no rate with which all of them kept up."] if alone else []),
    ]


def _rates(rates: frozenset[int]) -> str:
    return " and ".join(f"{rate:,}/s" for rate in sorted(rates))


def _sentence(answer: Answer, sides: Sequence[Side]) -> str:
    if answer.metric is CPU:
        return _cpu(answer, sides)
    best, *others = answer.order
    least = {side.label for side in sides if answer.metric.key in side.lower_bounds}
    if len(answer.leaders) == len(answer.order):
        return _no_difference(answer, least)
    at = f" at {answer.rate:,}/s" if answer.rate is not None else ""
    shown = ", ".join(f"`{label}` {_value(answer, label, least)}" for label in others)
    subject = FIRST[answer.metric].format(best, at=at) + _unclear(answer, least)
    text = f"{subject}: {answer.metric.title} {_value(answer, best, least)}"
    runner = next(label for label in others if label not in answer.leaders)
    times = answer.between(best, runner)
    at_least = "at least " if best in least else ""
    factor = f", {at_least}{describe_factor(times.ratio)} × `{runner}`" if times else ""
    return f"{text}{factor}; {shown}."


def _unclear(answer: Answer, least: set[str]) -> str:
    """Return, in brackets, which sides may be as good as the best one. `least` are the sides whose
    value is only a lower bound."""
    tied = [label for label in answer.leaders[1:] if label not in least]
    open_ended = [label for label in answer.leaders[1:] if label in least]
    parts = [
        f"no difference found to {_named(tied)}" if tied else "",
        f"not decided for {_named(open_ended)}, a lower bound" if open_ended else "",
    ]
    return f" ({'; '.join(filter(None, parts))})" if any(parts) else ""


def _cpu(answer: Answer, sides: Sequence[Side]) -> str:
    """Return the sentence that compares each side's CPU time with the first side's, in the order of
    the command line."""
    if len(answer.leaders) == len(answer.order):
        return _no_difference(answer, set())
    first, *others = [side.label for side in sides if side.label in answer.values]
    parts = []
    for label in others:
        found = answer.between(label, first)
        if found is None:
            continue
        if found.is_shown:
            parts.append(f"`{label}` uses {describe_factor(found.ratio)} × the CPU of `{first}`")
        else:
            parts.append(
                f"no difference found between the CPU of `{label}` and `{first}`"
                f" ({describe_interval(found.ratio)})"
            )
    return f"At {answer.rate:,}/s {'; '.join(parts)}."


def _no_difference(answer: Answer, least: set[str]) -> str:
    best, *others = answer.order
    at = f" at {answer.rate:,}/s" if answer.rate is not None else ""
    found = [one for label in others if (one := answer.between(label, best))]
    shown = ", ".join(f"`{one.of}` {describe_interval(one.ratio)} × `{one.to}`" for one in found)
    if any(one.p is None for one in found):
        return (
            f"A side with one run cannot show a difference in {answer.metric.title}{at}: {shown}."
        )
    if least & set(answer.order):
        title = answer.metric.title.capitalize()
        bounds = _named([label for label in answer.order if label in least])
        return f"{title} is not decided, since that of {bounds} is only a lower bound: {shown}."
    if any(one.ratio.excludes_1 and is_resolved(answer, one.of, one.to) for one in found):
        return f"Too few repeats to be sure of {answer.metric.title}{at}: {shown}."
    return f"No difference found in {answer.metric.title}{at}: {shown}."


def _value(answer: Answer, label: str, least: set[str]) -> str:
    at_least = "at least " if label in least else ""
    unit = answer.metric.unit
    space = "" if unit == CAPACITY.unit else " "
    return f"{at_least}{format_significant(answer.values[label].mean)}{space}{unit}"


def _named(labels: Sequence[str]) -> str:
    return " and ".join(f"`{label}`" for label in labels)


def describe_factor(ratio: Ratio) -> str:
    """Format a ratio with the half-width of its interval, such as `0.61 ± 0.05`; with both ends if
    it is wide, since it is not symmetric then."""
    if ratio.low is None or ratio.high is None:
        return f"{ratio.ratio:.2g}"
    if ratio.high > WIDE * ratio.low:
        return describe_interval(ratio)
    half = (ratio.high - ratio.low) / 2
    places = min(MOST_PLACES, max(0, -math.floor(math.log10(half)))) if half else MOST_PLACES
    return f"{ratio.ratio:.{places}f} ± {half:.{places}f}"


def describe_interval(ratio: Ratio) -> str:
    """Format a ratio with both ends of its interval."""
    if ratio.low is None or ratio.high is None:
        return f"{ratio.ratio:.2f}"
    return f"{ratio.ratio:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"


def table(sides: Sequence[Side]) -> list[list[str]]:
    """Return the rows of the table, the headings first. A row contains, for a metric at a rate, the
    geometric mean of each side with its 95 % interval, and the ratios of the other sides to the
    first side."""
    first, *others = sides
    heading = ["", "unit", *(side.label for side in sides)]
    rows = [[*heading, *(f"{side.label} ÷ {first.label}" for side in others)]]
    rates = sorted(frozenset.union(*(side.rates for side in sides)))
    keys: list[tuple[Metric, int | None]] = [(metric, None) for metric in OVERALL]
    whole = all((MEMORY.key, None) in side.figures for side in sides)
    at_rates = AT_RATES if whole else (*AT_RATES, MEMORY)
    keys += [(metric, rate) for rate in rates for metric in at_rates]
    for metric, rate in keys:
        cells = [_cell(side, sides, metric, rate) for side in sides]
        if any(cells):
            ratios = [_ratio_cell(side, sides, metric, rate) for side in others]
            at = f" at {rate:,}/s" if rate is not None else ""
            rows.append([f"{metric.title}{at}", metric.unit, *cells, *ratios])
    return rows


def _cell(side: Side, sides: Sequence[Side], metric: Metric, rate: int | None) -> str:
    if (metric.key, rate) not in side.figures:
        return ""
    of = mean_of(side, metric.key, rate, sides)
    at_least = "≥ " if metric.key in side.lower_bounds else ""
    behind = ", fell behind" if rate in side.not_sustained else ""
    return f"{at_least}{_mean(of)}{behind}"


def _mean(of: Summary) -> str:
    if of.half is None or of.low is None or of.high is None or of.high > WIDE * of.low:
        return format_interval(of.mean, of.low, of.high)
    return f"{format_significant(of.mean)} ± {format_significant(of.half, 2)}"


def _ratio_cell(side: Side, sides: Sequence[Side], metric: Metric, rate: int | None) -> str:
    """Format the ratio of a side to the first side."""
    key, first = (metric.key, rate), sides[0]
    if metric is PROCESSING_LAG or rate in side.not_sustained | first.not_sustained:
        return "not compared"
    if key not in side.figures or key not in first.figures:
        return ""
    found = difference(side, first, *key, sides)
    return describe_interval(found.ratio) if found else ""


def grid(rows: Sequence[Sequence[str]]) -> str:
    """Format the table for a terminal."""
    made = Grid(box=None, pad_edge=False)
    for number, name in enumerate(rows[0]):
        made.add_column(name, justify="left" if number < 2 else "right")
    for row in rows[1:]:
        made.add_row(*row)
    return as_text(made, TABLE_WIDTH)


def document(
    sides: Sequence[Side], conditions: Sequence[str], records: Sequence[FlatRecord]
) -> Document:
    """Return the comparison for export: sentences, figures by side, conditions of the measurement
    or differences between recorded ones, and records."""
    return document_of_answers(
        "comparison", sentences(sides), table(sides), conditions, _figures(sides), records
    )


def _figures(sides: Sequence[Side]) -> list[dict[str, Any]]:
    """Return a flat mapping for each metric of each side, with the ratio to the first side."""
    metrics = {metric.key: metric for metric in (*OVERALL, *AT_RATES)}
    first, found = sides[0], []
    for side in sides:
        for key, rate in side.figures:
            if key not in metrics:
                continue
            of = mean_of(side, key, rate, sides)
            apart = None
            if side is not first and (key, rate) in first.figures:
                apart = difference(side, first, key, rate, sides)
            found.append(
                {
                    "side": side.label,
                    "metric": key,
                    "requested_pageviews_per_s": rate,
                    "mean": of.mean,
                    "low": of.low,
                    "high": of.high,
                    "n": of.n,
                    "is_lower_bound": key in side.lower_bounds,
                    "ratio_to_first": apart.ratio.ratio if apart else None,
                    "ratio_low": apart.ratio.low if apart else None,
                    "ratio_high": apart.ratio.high if apart else None,
                }
            )
    return found


def describe_conditions(record: ComparisonRecord) -> list[str]:
    """Return lines on how the comparison was made: repeats, rates, reads, heaps, and caveats of the
    engines."""
    rates = " and ".join(f"{rate:,}" for rate in record.rates)
    how = f"{record.repeats} repeats on fresh stacks, at {rates}/s and at saturation"
    lines = [f"{how}; order by seed {record.seed}."]
    if record.is_quick:
        lines.append(QUICK)
    if record.reads_per_s:
        lines.append(
            f"A client read the views {record.reads_per_s} times a second, since an engine that"
            " computes only on reads would do nothing otherwise; --no-reads turns that off."
        )
    lines += [f"{record.heap_rule}."] if record.heap_rule else []
    return [*lines, *describe_exceptions(record)]


def describe_exceptions(record: RepeatedRuns) -> list[str]:
    """Return lines on capacities that are lower bounds, failed windows, and caveats of engines."""
    bounds = [
        f"`{piece}` gets further than its capacity says: {piece.remark}"
        for piece in record.pieces
        if piece.is_lower_bound
    ]
    failed = [
        f"Left out: `{piece}`, repeat {piece.repeat}, {piece.load}: {piece.outcome}"
        for piece in record.pieces
        if piece.outcome != "ok"
    ]
    caveats = [f"`{engine}`: {each}" for engine, of in record.caveats.items() for each in of]
    return list(dict.fromkeys([*bounds, *failed, *caveats]))
