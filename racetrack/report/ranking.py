"""The pages docs/index.html, which ranks engines, and docs/results.md. Both are generated from the
files in `results/`. They do not contain the time of their generation, so the same results give the
same pages.
"""

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from os.path import relpath
from pathlib import Path
from typing import Any

from racetrack import metrics
from racetrack.analysis.claims import Claim, Estimate, Key, Samples, claims, estimates
from racetrack.analysis.table import Load, Place, Row, rows_of_result
from racetrack.errors import UsageError
from racetrack.metrics import Metric
from racetrack.report.chart_data import decimals
from racetrack.report.html import environment, joined, own_file
from racetrack.report.render import markdown_table
from racetrack.report.sheet import answers, format_estimate, format_ratio
from racetrack.results.classes import TITLES, WORK, differing
from racetrack.results.folder import read_record
from racetrack.results.json_file import write_whole
from racetrack.results.published import EngineResult, slug_of_place

# Charts over the rate: of what, and the figures, the first with its intervals.
CHARTS = {
    "lag": (metrics.LAG, (metrics.VIEW_LAG_P99, metrics.LAG_P99)),
    "cpu": (metrics.CPU, (metrics.CPU_MEAN,)),
}
INTRODUCTION = """# Results

<!-- Generated from results/ by `./race publish`. Do not edit. -->

What engines reached, and what it cost. [index.html](index.html) draws these figures and ranks the
engines; [results/](../results/README.md) has them as data, with versions, settings and noise.

- **Compare figures within a section only**: each has its own workload and machine, which the
  engine shares with broker, generator and database.
- A figure is a geometric mean over [warmed-up runs on fresh stacks](compare.md#how-it-measures) of
  one session, with its 95 % interval; without one it comes from a single run. “~” marks an interval
  beyond ± 15 %.
- [Lag](verdict.md#lag) is the age of the oldest event that is due but not yet counted; [view
  lag](views.md), not yet in the view. CPU and memory are the engine's alone. Memory counts shared
  pages once and includes files on tmpfs. The base is the CPU use at rate 0, extrapolated.
- A difference is claimed by [one rule](compare.md#when-engines-differ), for all questions of a
  section together. Engines of different [classes](engines.md#classes) do different work; those that
  compute a view when it is read are not ranked.
- Answers are the views, compared row by row with their sources in runs with `--verify`.
"""
OVERALL = (metrics.CAPACITY, metrics.BASE_CPU)
AT_RATE = tuple(metric for metric in metrics.AT_RATE if metric is not metrics.CPU_MEAN)
MOST_LOADS = 2  # of a section of results.md; index.html has all
RANKED = (*metrics.AT_RATE, *OVERALL)
LOW = "below a tenth of a capacity"  # why nothing is ranked at a load
_PLACE = Place("", "", "")


@dataclass(frozen=True)
class Standing:
    """The results of one workload, machine and runtime, with their rows, estimates and claims.
    Variants are the names of results."""

    results: tuple[EngineResult, ...]
    samples: Samples
    estimates: Mapping[Key, Estimate]
    claims: tuple[Claim, ...]

    @property
    def rows(self) -> Sequence[Row]:
        """Rows of all results."""
        return self.samples.rows

    @property
    def loads(self) -> list[Load]:
        """Loads at which any engine was measured, in rising order."""
        loads = {load for _, _, load in self.estimates if load}
        return sorted(loads, key=lambda load: (load.share or 0, load))

    def verdicts(self, name: str, load: Load) -> dict[str, int]:
        """Return the number of runs by verdict of a result at a load."""
        rows = [row for row in self.rows if (row.variant, row.load) == (name, load)]
        counts: Counter[str] = Counter()
        for row in rows:
            counts[row.verdict] += max((of.n for of in row.intervals.values()), default=1)
        return dict(counts)


def write(root: Path, folder: Path) -> list[Path]:
    """Write the pages index.html and results.md into `folder` from all results below `root`. Return
    their paths.

    Raises:
        UsageError: a file is not a result, or its path does not match its content.
    """
    found = standings(read_results(root))
    pages = {
        folder / "index.html": ranking_page(found),
        folder / "results.md": results_page(found, relpath(root, folder)),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for page, text in pages.items():
        write_whole(page, text)
    return list(pages)


def read_results(root: Path) -> list[EngineResult]:
    """Return all results below `root`, sorted by path.

    Raises:
        UsageError: a file is not a result, or its path does not match its content.
    """
    found = []
    for file in sorted(root.rglob("*.json")):
        result = read_record(file, EngineResult)
        if file.relative_to(root).as_posix() != result.file_name:
            raise UsageError(
                f"The content of {file} belongs into {result.file_name}: move the file, or publish"
                " the result again."
            )
        found.append(result)
    return found


def standings(results: Sequence[EngineResult]) -> list[Standing]:
    """Return the results by workload, machine and runtime."""
    found = []
    for _, of_place in groupby(sorted(results, key=_place), key=_place):
        mine = tuple(of_place)
        rows = tuple(
            replace(row, variant=name_of(result), place=_PLACE)
            for result in mine
            for row in rows_of_result(result)
        )
        samples = Samples(rows)
        found.append(Standing(mine, samples, estimates(samples), tuple(claims(samples))))
    return found


def _place(result: EngineResult) -> tuple[str, str]:
    return result.workload, slug_of_place(result.machine, result.runtime)


def name_of(result: EngineResult) -> str:
    """Return the name of a result for people: the engine's title, and the variant."""
    return result.title + (f" ({result.variant})" if result.variant else "")


def ranking_page(found: Sequence[Standing]) -> str:
    """Return the page that ranks these results. It contains all data, so it works offline from
    `file://`."""
    data = {
        "metrics": {
            metric.key: {
                "title": metric.title,
                "unit": metric.unit,
                "means": metric.means,
                "more": metric.better == "more",
            }
            for metric in RANKED
        },
        "default": metrics.VIEW_LAG_P99.key,
        "classes": TITLES,
        "charts": {
            name: {
                "title": of.title,
                "unit": of.unit,
                "decimals": decimals(of.number_form),
                "keys": [metric.key for metric in figures],
            }
            for name, (of, figures) in CHARTS.items()
        },
        "standings": [_standing(one) for one in found],
    }
    return (
        environment()
        .get_template("ranking.html.j2")
        .render(
            data=data,
            charts=CHARTS,
            licence=own_file("uplot/LICENSE"),
            css=own_file("uplot/uPlot.min.css") + own_file("page.css") + own_file("ranking.css"),
            uplot=own_file("uplot/uPlot.iife.min.js"),
            modules=joined("charts", "ranking"),
        )
    )


def _standing(of: Standing) -> dict[str, Any]:
    """Return the data of a standing for the page: results without their windows, loads, answers,
    and a ranking for each figure and load."""
    first = of.results[0]
    return {
        "workload": first.workload,
        "machine": _place(first)[1],
        "place": f"{first.machine}, {first.runtime}",
        "answers": {choice: _answers_for(of, names) for choice, names in _choices(of).items()},
        "loads": [{"id": str(load), "per_s": load.per_s, "share": load.share} for load in of.loads],
        "results": [
            {
                "name": name_of(result),
                "path": result.file_name,
                **json.loads(result.model_copy(update={"windows": ()}).as_text()),
                "classes": result.classes_of_run,
            }
            for result in of.results
        ],
        "rankings": {
            metric.key: {
                str(load or ""): rows
                for load in (None, *of.loads)
                if (rows := _ranking(of, metric, load))
            }
            for metric in RANKED
        },
    }


def _choices(of: Standing) -> dict[str, tuple[str, ...]]:
    """Return the names of all results, by "", and of those of each class, by a text such as
    `where results live: served`, for all classes in which they differ."""
    classes = {name_of(result): result.classes_of_run for result in of.results}
    found: dict[str, tuple[str, ...]] = {"": tuple(classes)}
    for key, title in TITLES.items():
        values = dict.fromkeys(own[key] for own in classes.values() if key in own)
        for value in values if len(values) > 1 else ():
            names = (name for name, own in classes.items() if own.get(key) == value)
            found[f"{title}: {value}"] = tuple(names)
    return found


def _answers_for(of: Standing, names: Collection[str]) -> list[str]:
    """Return the answers about some of the results, from the claims about all."""
    rows = [row for row in of.rows if row.variant in names]
    made = [claim.among(names) for claim in of.claims]
    return answers(rows, [claim for claim in made if len(claim.order) > 1])


def _ranking(of: Standing, metric: Metric, load: Load | None) -> list[dict[str, Any]]:
    """Return the results that have a figure at a load, the best first, then those that did not hold
    the load, and those that are not ranked; each with the texts of its ratios to the others."""
    held = {row.variant for row in of.rows if row.load == load and (load is None or row.held)}
    known = {
        name: estimate
        for name, key, at in of.estimates
        if (key, at) == (metric.key, load) and (estimate := of.estimates[name, key, at])
    }
    sign, is_low = -1 if metric.better == "more" else 1, load and not of.samples.is_ranked_at(load)
    ranked = () if is_low else of.samples.ranked

    def place(name: str) -> tuple[bool, bool, float, str]:
        is_ranked = name in ranked
        return not is_ranked, name not in held, is_ranked * sign * known[name].mean, name

    order = sorted(known, key=place)
    comparable = [name for name in order if name in ranked and name in held]
    made = []
    for name in order:
        estimate = known[name]
        made.append(
            {
                "name": name,
                "mean": estimate.mean if math.isfinite(estimate.mean) else None,
                "low": estimate.low,
                "high": estimate.high,
                "n": estimate.n,
                "text": format_estimate(metric, estimate),
                "factors": {
                    to: _factor(of, metric, load, name, to)
                    for to in (comparable if name in comparable else ())
                    if to != name
                },
                "held": name in held,
                "unranked": "" if name in ranked else LOW if is_low else _works(of, name),
                "verdicts": of.verdicts(name, load) if load else {},
            }
        )
    return made


def _works(of: Standing, name: str) -> str:
    return f"computes {of.samples.classes[name][WORK]}"


def _factor(of: Standing, metric: Metric, load: Load | None, name: str, to: str) -> str:
    """Return the ratio of a result to another, and whether the difference is claimed."""
    claim = next((one for one in of.claims if (one.metric, one.load) == (metric, load)), None)
    pair = claim.pairs.get((name, to)) if claim else None
    if pair:
        return f"{format_ratio(pair.ratio)} ×{'' if pair.claimed else f', {pair.why_not}'}"
    unclaimed = of.samples.pair((name, metric.key, load), to)
    return f"{format_ratio(unclaimed.ratio)} ×, not claimed" if unclaimed else "no ratio"


def results_page(found: Sequence[Standing], root: str) -> str:
    """Return docs/results.md, with a section for each standing. `root` is the path of `results/`
    relative to the page."""
    return (INTRODUCTION + "".join(_section(one, root) for one in found)).rstrip()


def _section(of: Standing, root: str) -> str:
    first = of.results[0]
    machine = first.machine
    numbers = f" ({machine.cpu_numbers})" if machine.cpu_numbers else ""
    days = {day for one in of.results for day in (one.measured_from, one.measured_until)}
    when = " to ".join(dict.fromkeys((min(days), max(days))))
    memory = "" if machine.memory_gib is None else f", {machine.memory_gib:.0f} GiB"
    quota = f", {machine.quota}" if machine.quota else ""
    heading = (
        f"{first.workload}: {machine.cpu_model}{numbers}, {machine.cores} cores{quota}{memory}"
    )
    parts = [
        f"\n## {heading}\n\nRuntime {first.runtime}, measured {when}.\n\n",
        "".join(f"- {line}\n" for line in answers(of.rows, of.claims)),
        f"\n{_overall(of, root)}",
        *(_at_load(of, load) for load in _shared_loads(of)[-MOST_LOADS:]),
        _caveats(of.results),
        _commands(of.results),
    ]
    return "".join(parts)


def _shared_loads(of: Standing) -> list[Load]:
    """Return the loads at which at least two engines were measured, in rising order; all loads if
    there are none."""
    names = {load: {name for name, _, at in of.estimates if at == load} for load in of.loads}
    shared = [load for load, of_load in names.items() if len(of_load) > 1]
    return shared or of.loads


def _overall(of: Standing, root: str) -> str:
    columns = ("engine", "version", *map(_heading, OVERALL), "answers", "class")
    capacity = {
        name_of(one): of.estimates.get((name_of(one), metrics.CAPACITY.key, None))
        for one in of.results
    }
    best_first = sorted(
        of.results,
        key=lambda one: (
            name_of(one) not in of.samples.ranked,
            -(known.mean if (known := capacity[name_of(one)]) else 0),
        ),
    )
    rows = [
        (
            f"[{name_of(one)}]({root}/{one.file_name}){_mark(of, name_of(one))}",
            one.version,
            *(_cell(of, one, metric, None) for metric in OVERALL),
            _answers(one),
            _class(of, one),
        )
        for one in best_first
    ]
    return markdown_table(columns, rows)


def _at_load(of: Standing, load: Load) -> str:
    """Return the table of a load, the freshest engine first. Figures that no engine has are left
    out."""
    keys = [
        each for each in AT_RATE if any((n, each.key, load) in of.estimates for n in _names(of))
    ]
    columns = ("engine", *map(_heading, keys), "verdict")
    measured = {name for name, _, at in of.estimates if at == load}
    freshest = [row["name"] for row in _ranking(of, metrics.VIEW_LAG_P99, load)]
    order = [*freshest, *sorted(measured - {*freshest})]
    by_name = {name_of(one): one for one in of.results}
    rows = [
        (
            f"{name}{_mark(of, name)}",
            *(_cell(of, by_name[name], metric, load) for metric in keys),
            _verdicts(of.verdicts(name, load)),
        )
        for name in order
    ]
    why = "" if of.samples.is_ranked_at(load) else f" (not ranked: {LOW})"
    return f"\nAt {load}{why}:\n\n{markdown_table(columns, rows)}"


def _class(of: Standing, result: EngineResult) -> str:
    """Return the classes of a result in which results differ; all if they do not."""
    keys = differing(of.samples.classes.values()) or TITLES
    return "; ".join(filter(None, map(result.classes_of_run.get, keys)))


def _mark(of: Standing, name: str) -> str:
    return "" if name in of.samples.ranked else " (not ranked)"


def _names(of: Standing) -> list[str]:
    return [name_of(one) for one in of.results]


def _heading(metric: Metric) -> str:
    return f"{metric.title}, {metric.unit}"


def _cell(of: Standing, result: EngineResult, metric: Metric, load: Load | None) -> str:
    return format_estimate(metric, of.estimates.get((name_of(result), metric.key, load)))


def _answers(result: EngineResult) -> str:
    views = result.views
    if not views.runs:
        return "not checked"
    of = "" if views.of_workload is None else f" of {views.of_workload}"
    wrong = f", wrong: {', '.join(views.wrong)}" if views.wrong else ""
    return f"{len(views.right)}{of} views right{wrong}"


def _verdicts(counts: Mapping[str, int]) -> str:
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{runs} × {verdict}" for verdict, runs in counts.items())


def _caveats(results: Sequence[EngineResult]) -> str:
    concerned: dict[str, list[str]] = {}
    for result in results:
        for text in result.caveats:
            concerned.setdefault(text, []).append(name_of(result))
    lines = [f"- {', '.join(names)}: {text}\n" for text, names in concerned.items()]
    lines += [
        f"- {name_of(result)}: the script does not create {', '.join(result.views.absent)}.\n"
        for result in results
        if result.views.absent
    ]
    return "\n" + "".join(lines) if lines else ""


def _commands(results: Sequence[EngineResult]) -> str:
    commands = dict.fromkeys(command for result in results for command in result.commands)
    return "\nTo repeat this:\n\n" + "".join(f"    {command}\n" for command in commands)
