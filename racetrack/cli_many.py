"""The commands that make many runs: sweep, vary, limit."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from racetrack import engines, interrupts
from racetrack.cli_parts import Numbers, Seconds, engine_argument, errors_to_exit_codes, guarded
from racetrack.lock import machine_lock
from racetrack.runfolder import shown
from racetrack.screen import Screen
from racetrack.settings import load

if TYPE_CHECKING:
    from racetrack.sweep_record import Sweep

WAIT_OPTION = click.option(
    "--wait",
    type=Seconds(),
    default=60.0,
    show_default=True,
    help="Seconds to settle; a Java machine compiles for about a minute.",
)
SAMPLES_OPTION = click.option(
    "--samples",
    type=click.IntRange(min=1),
    default=30,
    show_default=True,
    help="Samples of top, a second apart; 30 resolve a verdict, 10 seldom do.",
)
REPEAT_OPTION = click.option(
    "--repeat", type=click.IntRange(min=1), default=3, show_default=True, help="Runs of each."
)
RESUME_OPTION = click.option(
    "--resume",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The folder of a sweep that was broken off: go on with what is missing.",
)


@click.command
@click.argument("names", metavar="ENGINE...", nargs=-1, type=click.Choice(engines.engine_names()))
@click.option("--rates", type=Numbers(), default="50,5000,35000", show_default=True)
@REPEAT_OPTION
@WAIT_OPTION
@SAMPLES_OPTION
@RESUME_OPTION
def sweep(
    names: tuple[str, ...],
    rates: list[int],
    repeat: int,
    wait: float,
    samples: int,
    resume: Path | None,
) -> None:
    """Run every ENGINE at every rate, each run afresh, engines taking turns.

    \b
    Examples:
        ./race sweep dh --rates 500,5000 --repeat 3
        ./race sweep --resume logs/2026.11.20.18.04.43_UTC_sweep
        ./race report logs/2026.11.20.18.04.43_UTC_sweep
    """
    from racetrack.sweep_record import Sweep

    if not names and not resume:
        raise click.UsageError("Name at least one ENGINE, or a sweep to --resume.")
    plan = Sweep(
        engines=tuple(names),
        rates=tuple(rates),
        repeat=repeat,
        wait_s=wait,
        samples=samples,
        delay_s=1.0,
    )
    _carry_out(plan, resume)


@click.command
@engine_argument
@click.argument("setting", metavar="SETTING")
@click.argument("values", metavar="VALUE,VALUE...")
@click.option(
    "--rate",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Pageviews per second; 0 leaves the engine idle but for a few purchases.",
)
@REPEAT_OPTION
@WAIT_OPTION
@SAMPLES_OPTION
def vary(
    engine: str, setting: str, values: str, rate: int, repeat: int, wait: float, samples: int
) -> None:
    """Run ENGINE with each value of one setting of .env: what that does to its CPU and memory.

    \b
    Examples:
        ./race vary dh DEEPHAVEN_HEAP 2g,4g,8g --rate 5000
        ./race vary dh DEEPHAVEN_CYCLE_MS 100,1000 --repeat 1
    """
    from racetrack.sweep import require_heeded
    from racetrack.sweep_record import Sweep

    each = values.split(",")
    with errors_to_exit_codes():
        for value in each:
            load({setting: value})  # a bad value is told before the first run, not at its turn
        require_heeded(setting, engine, load())
    plan = Sweep(
        engines=(engine,),
        rates=(rate,),
        repeat=repeat,
        wait_s=wait,
        samples=samples,
        delay_s=1.0,
        vary=setting,
        values=tuple(each),
    )
    _carry_out(plan, None)


def _carry_out(plan: "Sweep", resume: Path | None) -> None:
    from racetrack.sweep import begin, carry_out

    screen = Screen()
    with guarded(screen) as guard, machine_lock():
        folder = resume or begin(plan)
        try:
            all_ok = carry_out(folder, screen, guard)
        except interrupts.Interrupted:
            screen.say(f"Go on later: ./race sweep --resume {shown(folder)}")
            raise
        screen.say(f"Done. The table: ./race report {shown(folder)}")
    sys.exit(0 if all_ok else 1)


@click.command
@engine_argument
@click.option(
    "--start",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    help="The rate to begin with; near the limit saves time.",
)
@click.option(
    "--warm-up",
    type=Seconds(),
    default=60.0,
    show_default=True,
    help="Seconds at half the rate with which each run begins; Java compiles for about a minute.",
)
def limit(engine: str, start: int, warm_up: float) -> None:
    """Find the highest rate that ENGINE keeps up with, to 5 %.

    \b
    It climbs within one run to see where to look, then searches with fresh ones until 3 of 3 keep
    up at the lower rate and 2 of 3 fall behind at the upper one. Exit code 1 if it was not found
    to 5 %.

    \b
    Examples:
        ./race limit pg --start 48000
        ./race limit flink --start 8000 --warm-up 180
    """
    from racetrack.limit import PACE, LimitSearch, in_words

    screen = Screen()
    with guarded(screen) as guard, machine_lock():
        pace = replace(PACE, warm_up_s=warm_up)
        least, most = pace.expected_minutes()
        screen.say(
            f"This takes about {least:.0f} to {most:.0f} minutes, and longer where the lag swings"
            " so much that runs do not decide: the next are then made longer."
        )
        search = LimitSearch(engine, load(), screen, guard, pace)
        found = search.run(start)
        screen.heading(in_words(found))
        screen.say(f"  {shown(search.folder)}")
    sys.exit(0 if found.outcome == "ok" else 1)
