"""`./race check`: checks the services that the user provides."""

import click

from racetrack.cli.parameters import Command, guarded, load_settings


@click.command(cls=Command)
def check() -> None:
    """Check that runs can use the services that run elsewhere, in at most ten seconds each.

    These are the services for which the settings contain an address (docs/own-parts.md). A run
    makes the same check before it starts anything. The check removes what it creates.

    \b
    Examples:
        ./race check
        POSTGRES_URL=postgres://me@db.example/race ./race check
    """
    from racetrack.errors import UsageError
    from racetrack.stack import provided
    from racetrack.terminal import Screen

    screen = Screen()
    with guarded(screen):
        settings = load_settings()
        if not (used := provided.configured(settings)):
            names = ", ".join(each.setting for each in provided.every())
            raise UsageError(
                "There is nothing to check: runs start all services themselves. Set one of these"
                f" for a service that runs elsewhere (docs/own-parts.md): {names}."
            )
        for each in used:
            passed = each.check(settings)
            screen.say(f"{each.title} at {each.address(settings)}:")
            for operation in passed.operations:
                screen.say(f"  can {operation}")
            if passed.clock:
                screen.say(f"  {passed.clock}")
