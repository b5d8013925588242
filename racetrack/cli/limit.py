"""`./race limit`: the highest rate that an engine keeps up with."""

import sys
from dataclasses import replace

import click

from racetrack.cli.parameters import EXIT_CODES, ExampleCommand, Seconds, engine_argument, guarded
from racetrack.machine_lock import machine_lock
from racetrack.runfolder import shown
from racetrack.screen import Screen
from racetrack.settings import load


@click.command(cls=ExampleCommand, epilog=EXIT_CODES)
@engine_argument
@click.option(
    "--start",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="The rate to begin with; a rate near the limit saves time.",
)
@click.option(
    "--warm-up",
    type=Seconds(),
    default=60.0,
    show_default=True,
    help="Seconds at half the rate at the start of each run; Java compiles for about a minute.",
)
def limit(engine: str, start: int, warm_up: float) -> None:
    """Find the highest rate that ENGINE keeps up with, to 5 %.

    \b
    It climbs within one run to see where to look. Then it searches with fresh runs, until 3 of 3
    keep up at the lower rate and 2 of 3 fall behind at the upper one. Exit code 1 if the limit was
    not found to 5 %.

    \b
    Examples:
        ./race limit {engine} --start 48000
        ./race limit {other} --start 8000 --warm-up 180
    """
    from racetrack.run.limit import PACE, LimitSearch, in_words

    screen = Screen()
    with guarded(screen) as guard, machine_lock():
        pace = replace(PACE, warm_up_s=warm_up)
        least, most = pace.expected_minutes()
        screen.say(
            f"This takes about {least:.0f} to {most:.0f} minutes. It takes longer if the lag swings"
            " so much that runs do not decide, because the next runs are then longer."
        )
        search = LimitSearch(engine, load(), screen, guard, pace)
        found = search.run(start)
        screen.heading(in_words(found))
        screen.say(f"  {shown(search.folder)}")
    sys.exit(0 if found.outcome == "ok" else 1)
