"""`./race live` and `./race replay`: a session whose load a user changes in a browser."""

import os
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from racetrack import plugins
from racetrack.cli.parameters import (
    ENGINES,
    FOLDER,
    QUERIES_OPTION,
    WORKLOAD_OPTION,
    Command,
    Load,
    Rate,
    errors_to_exit_codes,
    guarded,
    load_settings,
    refuse_rate,
)
from racetrack.machine_lock import machine_lock

if TYPE_CHECKING:
    from racetrack.run.live.record import LiveArguments
    from racetrack.workloads.load_profile import LoadProfile

DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY")
HOST_OPTION = click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address on which the page listens. Anyone who can reach another address than the default"
    " sees the page; changing anything needs the token in the printed URL.",
)
PORT_OPTION = click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8099,
    show_default=True,
    help="Port of the page; 0 takes a free one.",
)


@click.command(cls=Command)
@click.argument("engines", metavar="ENGINE...", type=ENGINES, nargs=-1, required=True)
@click.option(
    "--rate",
    type=Rate(),
    default="5k",
    show_default=True,
    help="Events per second of the workload's main topic at the beginning.",
)
@click.option(
    "--load",
    type=Load(),
    metavar="PROFILE",
    help="A rate that changes, instead of --rate, as for `./race run`.",
)
@HOST_OPTION
@PORT_OPTION
@WORKLOAD_OPTION
@QUERIES_OPTION
def live(
    engines: tuple[str, ...],
    rate: int,
    load: "LoadProfile | None",
    host: str,
    port: int,
    workload: str | None,
    queries: str | None,
) -> None:
    """Run engines side by side on one input, and change the load in a browser.

    The command prints the address of a page, and opens it where there is a desktop. It runs until
    Ctrl-C, or until the page ends it, and leaves one folder in logs/. Ending it is success. The
    noise gate does not apply, and sessions appear in no table.

    \b
    Examples:
        ./race live dh pg
        ./race live dh --rate 20k --port 8100
        ./race live dh pg --load 'spike 5k 50k 10s'
    """
    from racetrack.run.live.record import LiveArguments

    if load:
        refuse_rate()
    _run(plugins.JOIN.join(engines), LiveArguments(rate, load), host, port, workload, queries)


@click.command(cls=Command)
@click.argument("folder", type=FOLDER)
@click.argument("engines", metavar="[ENGINE]...", type=ENGINES, nargs=-1)
@HOST_OPTION
@PORT_OPTION
def replay(folder: Path, engines: tuple[str, ...], host: str, port: int) -> None:
    """Repeat the actions of a live session, at the same times, on the same or on other engines.

    FOLDER is the folder of a session. Without ENGINE the engines are those of the session. The
    replay ends when the session ended, and leaves a folder of its own.

    \b
    Examples:
        ./race replay logs/2026.11.26.07.30.00_UTC_dh+pg_live
        ./race replay logs/2026.11.26.07.30.00_UTC_dh_live flink
    """
    from racetrack.run.live.record import read_session

    with errors_to_exit_codes():
        name, arguments, workload = read_session(folder, plugins.JOIN.join(engines))
    _run(name, arguments, host, port, workload)


def _run(
    engine: str,
    arguments: "LiveArguments",
    host: str,
    port: int,
    workload: str | None,
    queries: str | None = None,
) -> None:
    from racetrack.live.server import Server, listen
    from racetrack.run.live.session import open_live
    from racetrack.terminal import Screen

    screen = Screen()
    with guarded(screen) as guard:
        settings = load_settings(workload, queries)
        with machine_lock(), listen(host, port) as listener:
            session = open_live(engine, arguments, settings, screen)
            server = Server(session, secrets.token_urlsafe(24), listener)
            server.start()
            try:
                screen.heading(server.url)
                if any(os.environ.get(name) for name in DISPLAYS):
                    click.launch(server.url)
                outcome = session.run(guard)
            finally:
                guard.disarm()
                server.stop()
    sys.exit(0 if outcome == "ok" else 1)
