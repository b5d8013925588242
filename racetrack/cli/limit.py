"""`./race limit`: searches for the capacity and the highest sustainable rate of engines."""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from racetrack.cli.job import MeasuringCommand
from racetrack.cli.outputs import Gate, Output, gate_options, output_options
from racetrack.cli.parameters import (
    ENGINES,
    POSITIVE_S,
    WORKLOAD_OPTION,
    Duration,
    Rate,
    guarded,
    load_settings,
    say_error,
)
from racetrack.errors import RacetrackError
from racetrack.machine_lock import machine_lock

if TYPE_CHECKING:
    from racetrack.run.capacity_search import CapacitySearch
    from racetrack.terminal import Screen


@click.command(cls=MeasuringCommand)
@click.argument("names", metavar="ENGINE...", nargs=-1, required=True, type=ENGINES)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of searches of each engine; engines alternate. At the end the command"
    " compares them.",
)
@click.option(
    "--start",
    type=Rate(1),
    help="Rate to begin with, by default 1000 pageviews per second. An engine that takes long to"
    " warm up may need less.",
)
@click.option(
    "--warm-up",
    type=Duration(POSITIVE_S),
    default="120s",
    show_default=True,
    help="Longest time to wait until CPU time per event is flat, while Java compiles its code.",
)
@click.option(
    "--bound",
    "bounds",
    type=Duration(POSITIVE_S),
    multiple=True,
    help="Bound of the lag, such as 2s or 500ms. The option may be given several times. Without"
    " it there are two bounds, 2 s and 5 s.",
)
@click.option(
    "--within",
    type=Duration(60),
    default="15m",
    show_default=True,
    help="Time limit for one search, such as 25m. No rate trial is begun that would end later.",
)
@WORKLOAD_OPTION
@output_options
@gate_options
def limit(
    names: tuple[str, ...],
    repeat: int,
    start: int | None,
    warm_up: float,
    bounds: tuple[float, ...],
    within: float,
    workload: str | None,
    output: Output,
    gate: Gate,
    make_search: "Callable[..., CapacitySearch] | None" = None,
) -> None:
    """Find the capacity of each ENGINE, and the highest rate at which its lag stays within a bound.

    Capacity is the throughput at saturation. It is measured in two fresh runs, which offer so much
    that the backlog stays at 5 to 30 s of work. When the backlog has been worked off, the search
    tries 0.95 of the capacity, 0.90, and so on, for 90 s each, until the 99th percentile of the
    lag stays within each bound. The exit code is 1 if there was no time to find each of these rates
    to 0.05 of the capacity.

    \b
    Examples:
        ./race limit dh
        ./race limit dh flink --repeat 3
        ./race limit flink --within 25m
        ./race limit dh --bound 500ms --bound 2s
        ./race limit dh --against results/shop/m/dh@42.7.json --fail-if 'capacity_per_s<-10%'
    """
    from racetrack.analysis import table
    from racetrack.engines import find_engine
    from racetrack.report.render import document
    from racetrack.report.sheet import sheet
    from racetrack.run.capacity_search import CapacitySearch
    from racetrack.run.checks import require_raced_on
    from racetrack.run.trials import DURATIONS

    search, screen = make_search or CapacitySearch, output.screen()
    bounds_ms = tuple(sorted({1000 * bound_s for bound_s in bounds})) or DURATIONS.bounds_ms
    durations = replace(DURATIONS, warm_up_most_s=warm_up, within_s=within, bounds_ms=bounds_ms)
    with guarded(screen) as guard:
        settings = load_settings(workload)
        for name in names:
            require_raced_on(find_engine(name), settings)
        with machine_lock():
            planned = names * repeat
            screen.say(
                f"{'This takes' if len(planned) == 1 else f'Each of {len(planned)} searches takes'}"
                f" {within / 60:g} minutes at most, or the time of two saturated runs if that"
                " is longer, plus the time to repeat windows that are void."
            )
            made, codes = [], []
            for number, name in enumerate(planned, start=1):
                if len(planned) > 1:
                    screen.heading(f"== search {number} of {len(planned)}: {name}")
                made.append(search(name, settings, screen, guard, durations, start))
                codes.append(_found(made[-1], screen))
            found = table.read([each.folder for each in made])
            if len(planned) > 1:
                output.show(sheet(found, "searches"))
            else:
                output.write(document(sheet(found, "searches")))
            codes.append(gate.exit_code(found.rows, screen))
    sys.exit(next(filter(None, codes), 0))


def _found(search: "CapacitySearch", screen: "Screen") -> int:
    """Run a search and print its result. Return its exit code. An error ends only this search."""
    from racetrack.analysis.outcome import exit_code
    from racetrack.results.folder import shown
    from racetrack.run.search_texts import describe_search

    try:
        found = search.run()
    except RacetrackError as error:
        say_error(error)
        return error.exit_code
    for line in describe_search(found):
        screen.heading(line)
    screen.say(f"  {shown(search.folder)}")
    return exit_code(found.outcome)
