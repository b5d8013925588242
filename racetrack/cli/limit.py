"""`./race limit`: an engine's capacity, and the highest rate that it sustains."""

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from racetrack import engines
from racetrack.cli.parameters import (
    EXIT_CODES,
    WORKLOAD_OPTION,
    ExampleCommand,
    Seconds,
    guarded,
    overrides_of,
    say_error,
)
from racetrack.errors import RacetrackError
from racetrack.limit_record import PAGEVIEWS
from racetrack.machine_lock import machine_lock
from racetrack.runfolder import shown
from racetrack.screen import Screen
from racetrack.settings import load

if TYPE_CHECKING:
    from racetrack.run.capacity_search import CapacitySearch


@click.command(cls=ExampleCommand, epilog=EXIT_CODES)
@click.argument(
    "names",
    metavar="ENGINE...",
    nargs=-1,
    required=True,
    type=click.Choice(engines.engine_names()),
)
@click.option(
    "--repeat",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Number of searches of each engine; engines take turns. At the end it says how far they"
    " agree.",
)
@click.option(
    "--start",
    type=click.IntRange(min=1),
    help="What to begin with a second; 1000 pageviews, or 100 of what comes by CDC. An engine that"
    " takes long to warm up may want less.",
)
@click.option(
    "--of",
    default=PAGEVIEWS,
    show_default=True,
    help="What to raise: pageviews, or inserts that come by CDC, as the workload names them"
    " (purchases). Those are followed by marks, which are turned on for them.",
)
@click.option(
    "--warm-up",
    type=Seconds(),
    default=120.0,
    show_default=True,
    help="At most so many seconds until CPU time per event is flat; Java compiles meanwhile.",
)
@click.option(
    "--bound",
    "bounds",
    type=Seconds(),
    multiple=True,
    help="What the lag may be; may be given more than once. If it is not: 2 s, and 5 s.",
)
@click.option(
    "--within",
    type=click.FloatRange(min=1),
    default=15.0,
    show_default=True,
    help="Minutes of one search; no rate is begun that would end later.",
)
@WORKLOAD_OPTION
def limit(
    names: tuple[str, ...],
    repeat: int,
    start: int | None,
    of: str,
    warm_up: float,
    bounds: tuple[float, ...],
    within: float,
    workload: str | None,
) -> None:
    """Find the capacity of each ENGINE, and the highest rate at which its lag stays within a bound.

    \b
    Capacity is the rate at which it works when there is always more to do: two fresh runs, offered
    so much that the backlog stays at about 5 to 30 s of work. Once that is worked off, 0.95 of it,
    0.90, ... show at which the 99th percentile of the lag stays within each bound, for 90 s. Exit
    code 1 if time was too short to tell each of them to 0.05 of the capacity.

    \b
    Examples:
        ./race limit {engine}
        ./race limit {engine} {other} --repeat 3
        ./race limit {other} --within 25
        ./race limit {engine} --bound 1 --bound 2
        ./race limit {engine} --of purchases
    """
    from racetrack.report import agreement
    from racetrack.run.capacity_search import CapacitySearch, settings_to_search
    from racetrack.run.trials import DURATIONS

    screen = Screen()
    with guarded(screen) as guard, machine_lock():
        bounds_ms = tuple(sorted({1000 * bound_s for bound_s in bounds})) or DURATIONS.bounds_ms
        durations = replace(
            DURATIONS, warm_up_most_s=warm_up, within_s=60 * within, bounds_ms=bounds_ms
        )
        settings = load(overrides_of(workload))
        for name in names:
            settings_to_search(name, settings, of)
        planned = names * repeat
        screen.say(
            f"{'This takes' if len(planned) == 1 else f'Each of {len(planned)} searches takes'}"
            f" {within:g} minutes at most, or what two overloaded runs take if that is more; what"
            " others disturb is done again, and comes on top."
        )
        made, codes = [], []
        for number, name in enumerate(planned, start=1):
            if len(planned) > 1:
                screen.heading(f"== search {number} of {len(planned)}: {name}")
            made.append(CapacitySearch(name, settings, screen, guard, durations, start, of))
            codes.append(_found(made[-1], screen))
        for line in agreement.describe(search.record for search in made):
            screen.heading(line)
    sys.exit(next(filter(None, codes), 0))


def _found(search: "CapacitySearch", screen: Screen) -> int:
    """What one search found is said; its exit code. Where it failed, the next one goes on."""
    from racetrack.analysis.outcome import exit_code
    from racetrack.report import limits

    try:
        found = search.run()
    except RacetrackError as error:
        say_error(error)
        return error.exit_code
    for line in limits.lines(found):
        screen.heading(line)
    screen.say(f"  {shown(search.folder)}")
    return exit_code(found.outcome)
