"""Sweep: many runs according to a plan, with engines interleaved. A sweep can be resumed."""

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from racetrack import terminal
from racetrack.config import Settings, load
from racetrack.engines import find_engine
from racetrack.errors import UsageError
from racetrack.results.folder import named_folder, read_plan, read_run, write_record
from racetrack.results.run import RunArguments
from racetrack.results.sweep import Sweep, SweepRun
from racetrack.results.sweep import article as read_article
from racetrack.run import experiment
from racetrack.run.checks import services_of
from racetrack.run.experiment import run_once
from racetrack.run.lifecycle import run_until_not_void
from racetrack.stack import applicability
from racetrack.stack.runtime import open_stack
from racetrack.terminal import Screen

PLAN = "sweep.json"
RunOnce = Callable[[str, RunArguments, Settings, Screen, terminal.Guard], Path]


def planned(sweep: Sweep) -> Sweep:
    """Return the sweep with its planned runs. Engines alternate, so that slow changes of the
    machine's speed affect all engines equally."""
    if sweep.as_published:
        return sweep.model_copy(update={"runs": _published_runs(sweep.engines)})
    runs = tuple(
        SweepRun(engine=engine, pageviews_per_s=rate, repeat=repeat, value=value)
        for repeat in range(1, sweep.repeat + 1)
        for rate in sweep.rates
        for value in (sweep.values or (None,))
        for engine in sweep.engines
    )
    return sweep.model_copy(update={"runs": runs})


def as_published(names: Sequence[str], decide_within_s: float) -> Sweep:
    """Return a sweep that repeats the experiment of 2022 as described in its article.

    Raises:
        UsageError: an engine was not part of that experiment.
    """
    article = read_article()
    if others := [name for name in names if name not in article.engines]:
        raise UsageError(
            f"{', '.join(others)}: not in the published experiment, which was of"
            f" {' and '.join(article.engines)}. Leave out --as-published."
        )
    return Sweep(
        engines=tuple(names),
        wait_s=article.wait_s,
        samples=article.samples,
        delay_s=article.delay_s,
        decide_within_s=decide_within_s,
        as_published=True,
    )


def _published_runs(names: Sequence[str]) -> tuple[SweepRun, ...]:
    article = read_article()
    return tuple(
        SweepRun(
            engine=result.engine,
            pageviews_per_s=result.pageviews_per_s,
            repeat=1,
            settings={**article.settings, **result.settings},
        )
        for result in sorted(article.results, key=lambda result: result.pageviews_per_s)
        if result.engine in names
    )


def require_possible(sweep: Sweep) -> None:
    """Check, before the first run, that each combination of engine and settings in the plan can
    run.

    Raises:
        UsageError, SetupError: a combination can't run.
    """
    checked = []
    for run in sweep.runs or planned(sweep).runs:
        kind = (run.engine, run.value, run.settings)
        if run.outcome is None and kind not in checked:
            checked.append(kind)
            experiment.require_possible(
                run.engine, _arguments(run, sweep), load(_settings(run, sweep))
            )


def require_applicable(setting: str, engine: str, settings: Settings) -> None:
    """Check that varying a setting has an effect, before hours are spent on runs.

    Raises:
        UsageError: the setting has no effect in this runtime, or only in another workload.
    """
    if (of := applicability.workload_of(setting)) not in ("", settings.workload):
        raise UsageError(
            f"{setting.upper()} has no effect: it is a setting of the workload {of}."
            f" Add --workload {of}, or vary another setting."
        )
    services = services_of(find_engine(engine), settings)
    stack = open_stack(settings, services, lambda _: None)
    applicability.require_applicable(setting, stack.runtime, airgap=settings.airgap)


def begin(sweep: Sweep) -> Path:
    """Create the sweep's folder with its plan; return the folder."""
    folder = named_folder(load().logs_folder, "sweep")
    write_record(folder / PLAN, planned(sweep))
    return folder


def carry_out(
    folder: Path, screen: Screen, guard: terminal.Guard, run_once: RunOnce = run_once
) -> bool:
    """Make the remaining runs of the plan. Return whether all runs have the outcome `ok`.

    Raises:
        Interrupted: a signal was received; the sweep can be resumed.
    """
    sweep = read_plan(folder, Sweep)
    runs = list(sweep.runs)
    took_s: list[float] = []
    pending = [number for number, run in enumerate(runs) if run.outcome is None]
    for done, number in enumerate(pending):
        run = runs[number]
        screen.heading(_progress(run, done, len(pending), took_s))
        began = time.monotonic()
        runs[number] = _run(run, sweep, folder.parent, screen, guard, run_once)
        took_s.append(time.monotonic() - began)
        sweep.runs = tuple(runs)
        write_record(folder / PLAN, sweep)
        guard.rearm()
    return all(run.outcome == "ok" for run in runs)


def _run(
    run: SweepRun,
    sweep: Sweep,
    logs_folder: Path,
    screen: Screen,
    guard: terminal.Guard,
    run_once: RunOnce,
) -> SweepRun:
    """Make one run. Its folder is created next to the sweep's folder, where reports expect it, even
    if the setting LOGS_FOLDER has changed since the sweep began."""
    here = {"LOGS_FOLDER": str(logs_folder.resolve())}
    settings, arguments = load({**_settings(run, sweep), **here}), _arguments(run, sweep)
    made = run_until_not_void(
        lambda: run_once(run.engine, arguments, settings, screen, guard), screen, guard
    )
    return run.model_copy(update={"tag": made.name, "outcome": read_run(made).outcome})


def _settings(run: SweepRun, sweep: Sweep) -> dict[str, str]:
    """Return the settings of a run in the plan, by their names in `.env`."""
    varied = {sweep.vary: run.value} if sweep.vary and run.value is not None else {}
    return {**sweep.settings, **run.settings, **varied}


def _arguments(run: SweepRun, sweep: Sweep) -> RunArguments:
    extends = not (sweep.faults or sweep.load) and run.pageviews_per_s > 0
    return RunArguments(
        pageviews_per_s=run.pageviews_per_s,
        load=sweep.load,
        wait_s=sweep.wait_s,
        samples=sweep.samples,
        delay_s=sweep.delay_s,
        verify=sweep.verify,
        faults=sweep.faults,
        decide_within_s=sweep.decide_within_s if extends else 0,
    )


def _progress(run: SweepRun, done: int, of: int, took_s: Sequence[float]) -> str:
    left = ""
    if took_s:
        left = f", about {statistics.median(took_s) * (of - done) / 60:.0f} minutes left"
    what = f"{run.engine} at {run.pageviews_per_s:,}/s"
    value = f", {run.value}" if run.value is not None else ""
    return f"== run {done + 1} of {of}: {what}{value}, repeat {run.repeat}{left}"
