"""Output of a scaling measurement: sentences, a table, a chart, and flat records."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from racetrack.analysis.capacity import Scale, ScaleStep, scale_of
from racetrack.analysis.intervals import Summary
from racetrack.report.chart_data import Chart, Floats, Line
from racetrack.report.comparison import (
    describe_exceptions,
    describe_factor,
    describe_interval,
)
from racetrack.report.export import Document, document_of_answers, flat_pieces
from racetrack.report.figures import SHARE_OF_IDEAL, format_interval
from racetrack.report.recorded import Groups, groups_of
from racetrack.results.repeats import ScaleRecord, side_label
from racetrack.workloads.contract import run_label


def sentences(scale: Scale) -> list[str]:
    """Return a sentence on the capacities, and one on the rate to hold if there is one."""
    held = [_describe_hold(scale, scale.hold_per_s)] if scale.hold_per_s else []
    return [_describe_factors(scale), *held]


def _describe_factors(scale: Scale) -> str:
    """Return a sentence with the factor by which each larger number of replicas raises the capacity
    over the smallest number, beginning with the largest."""
    known = [step for step in scale.steps if step.factor][::-1]
    if not known:
        return (
            f"Not decided how `{scale.engine}` scales: fewer than two numbers of replicas have a"
            " capacity."
        )
    fewest = scale.first.replicas
    to = "what one holds" if fewest == 1 else f"what {fewest} hold"
    parts = [_describe_factor(scale, step) for step in known]
    first = f"`{scale.engine}`: {known[0].replicas} replicas hold {parts[0][0]} × {to}{parts[0][1]}"
    others = [
        f"{step.replicas} hold {factor} ×{doubt}"
        for step, (factor, doubt) in zip(known[1:], parts[1:], strict=True)
    ]
    return f"{'; '.join([first, *others])}."


def _describe_factor(scale: Scale, step: ScaleStep) -> tuple[str, str]:
    """Return a factor as text, and why it decides nothing; empty if it decides."""
    assert step.factor  # noqa: S101
    factor = step.factor
    if factor.excludes_1 is None:
        return f"{factor.ratio:.2g}", " (not decided: too few repeats for an interval)"
    if scale.first.at_least:
        bound = " (not decided: both are lower bounds)" if step.at_least else ""
        return f"at most {describe_factor(factor)}", bound
    least = "at least " if step.at_least else ""
    if not factor.excludes_1:
        return f"{least}{describe_interval(factor)}", " (no difference found)"
    return f"{least}{describe_factor(factor)}", ""


def _describe_hold(scale: Scale, per_s: int) -> str:
    """Name the least number of replicas that holds the rate, as far as the runs decide it."""
    tried = [step for step in scale.steps if step.held + step.failed]
    if not tried:
        return f"Not decided which number of replicas holds {per_s:,}/s: no run showed it."
    candidates = scale.candidates()
    if not candidates:
        last = tried[-1]
        return (
            f"More than {_replicas(last)} are needed to hold {per_s:,}/s:"
            f" {last.replicas} held it in {_count(last)}."
        )
    least = candidates[-1]
    if len(candidates) > 1 or not least.holds:
        more = "" if least.holds else "; more may be needed"
        counts = ", ".join(f"{step.replicas} in {_count(step)}" for step in tried)
        return (
            "Not decided which number of replicas is the least that holds"
            f" {per_s:,}/s: held by {counts}{more}."
        )
    if least is scale.first:
        verb = "holds" if least.replicas == 1 else "hold"
        return f"{_replicas(least)}, the fewest tried, {verb} {per_s:,}/s: in {_count(least)}."
    below = scale.steps[scale.steps.index(least) - 1]
    return (
        f"{_replicas(least)} are the fewest tried that hold {per_s:,}/s: in {_count(least)},"
        f" {below.replicas} in {_count(below)}."
    )


def _replicas(step: ScaleStep) -> str:
    return f"{step.replicas} replica{'' if step.replicas == 1 else 's'}"


def _count(step: ScaleStep) -> str:
    of = step.held + step.failed
    return f"{step.held} of {of} run{'' if of == 1 else 's'}"


def table(scale: Scale) -> list[list[str]]:
    """Return the rows of the table, the headings first."""
    fewest = scale.first.replicas
    heading = ["replicas", "runs", "capacity, /s", f"÷ capacity of {fewest}", "% of ideal"]
    rows = [[*heading, *([f"holds {scale.hold_per_s:,}/s"] if scale.hold_per_s else [])]]
    for step in scale.steps:
        share = scale.share_of_ideal(step)
        cells = [
            str(step.replicas),
            str(step.runs),
            f"{'≥ ' if step.at_least else ''}{_capacity(step.capacity)}",
            describe_interval(step.factor) if step.factor else "",
            f"{100 * share:.0f}" if share else "",
        ]
        rows.append([*cells, *([_hold_cell(step)] if scale.hold_per_s else [])])
    return rows


def _capacity(of: Summary | None) -> str:
    return format_interval(of.mean, of.low, of.high) if of else ""


def _hold_cell(step: ScaleStep) -> str:
    if not step.held + step.failed:
        return ""
    answer = {True: "yes", False: "no", None: "not decided"}[step.holds]
    return f"{answer}, in {_count(step)}"


MEANING = (
    "Capacity is throughput at saturation; bars are 95 % intervals. The ideal line is the capacity"
    " of the fewest replicas times the ratio of replicas."
)


def chart(scale: Scale) -> Chart | None:
    """Return a chart of capacity against replicas, with the ideal line; None without a capacity."""
    known = [(step, step.capacity) for step in scale.steps if step.capacity]
    if not known:
        return None
    x = np.array([float(step.replicas) for step, _ in known])
    y = np.array([of.mean for _, of in known])
    # The intervals are those of logarithms. Charts draw the longer arm on both sides.
    half = np.array([np.nan if of.high is None else of.high - of.mean for _, of in known])
    every: Floats = np.array([float(step.replicas) for step in scale.steps])
    lines = [Line("measured", x, y, 0, "points", half)]
    if known[0][0] is scale.first:
        lines.append(Line("ideal", every, y[0] * every / every[0], 1))
    if scale.hold_per_s:
        rate = np.full(len(every), float(scale.hold_per_s))
        lines.append(Line("rate to hold", every, rate, 2))
    return Chart(
        title=f"Capacity of {scale.engine} against replicas",
        x_title="replicas",
        y_title="pageviews/s",
        lines=tuple(lines),
        x_form="{:,.0f}",
        x_unit="",
        y_form="{:,.0f}",
        y_unit="/s",
        meaning=MEANING,
    )


def describe_conditions(record: ScaleRecord) -> list[str]:
    """Return lines on how scaling was measured, and on what was left out."""
    lines = [
        f"{record.repeats} repeats on fresh stacks; order by seed {record.seed}.",
        f"{describe_partitions(record)}.",
    ]
    if record.is_quick:
        lines.append("Quick: windows are short and begin soon after the start.")
    return [*lines, *describe_exceptions(record)]


def describe_partitions(record: ScaleRecord) -> str:
    """Describe how the replicas share the partitions of the input."""
    uneven = [str(each) for each in record.replicas if record.partitions % each]
    if not uneven:
        return f"{record.partitions} partitions, shared equally by the replicas"
    return (
        f"{record.partitions} partitions, which {' or '.join(uneven)} replicas can't share equally;"
        " that lowers their capacity"
    )


def document(record: ScaleRecord) -> Document:
    """Return the result for export: sentences, figures by number of replicas, conditions of the
    measurement, and records."""
    scale = scale_of(record)
    return document_of_answers(
        "scale",
        sentences(scale),
        table(scale),
        describe_conditions(record),
        [_figures(scale, step) for step in scale.steps],
        flat_pieces(record),
    )


def _figures(scale: Scale, step: ScaleStep) -> Mapping[str, Any]:
    share = scale.share_of_ideal(step)
    return {
        "replicas": step.replicas,
        "runs": step.runs,
        "capacity_per_s": step.capacity.mean if step.capacity else None,
        "capacity_low_per_s": step.capacity.low if step.capacity else None,
        "capacity_high_per_s": step.capacity.high if step.capacity else None,
        "is_lower_bound": step.at_least,
        "factor": step.factor.ratio if step.factor else None,
        "factor_low": step.factor.low if step.factor else None,
        "factor_high": step.factor.high if step.factor else None,
        SHARE_OF_IDEAL: 100 * share if share else None,
        "hold_pageviews_per_s": scale.hold_per_s,
        "runs_held": step.held,
        "runs_failed": step.failed,
        "holds": step.holds,
    }


def groups(record: ScaleRecord) -> Groups:
    """Return the groups for which conditions are checked: the windows of each number of replicas,
    with its share of the ideal capacity."""
    found, scale = groups_of(flat_pieces(record)), scale_of(record)
    for step in scale.steps:
        label = side_label(record.engine, step.replicas)
        group = found.get((label, None))
        if group and (share := scale.share_of_ideal(step)):
            ideal = {SHARE_OF_IDEAL: Summary(100 * share, None, None, step.runs)}
            columns = group.columns | {SHARE_OF_IDEAL}
            figures = {**group.figures, **ideal}
            found[label, None] = replace(group, figures=figures, columns=columns)
    return found


def place(record: ScaleRecord) -> str:
    """Return where scaling was measured: runtime, workload and machine."""
    return f"{run_label(record.runtime, record.workload)}: {record.machine}"
