"""The command line: `./run_experiment.sh` and `./race`. COMMANDS lists the file of each command.

For fast help and completion, the module of a command is imported only when the command is called,
and modules import slow dependencies inside functions.
"""

import importlib
import os
import signal
import sys
from collections.abc import Mapping

import click

from racetrack import __version__, environment, renamed
from racetrack.cli.parameters import Command, errors_to_exit_codes

COMPLETE_VARIABLE = "_RACE_COMPLETE"
# Name of the command that ./run_experiment.sh calls: `./race run` with positional arguments.
POSITIONAL_FORM = "run_experiment"
# Heading in the help → command → module and attribute of the command.
COMMANDS: Mapping[str, Mapping[str, str]] = {
    "Measure": {
        "compare": "compare:compare",
        "plan": "plans:plan",
        "run": "run:run",
        "limit": "limit:limit",
    },
    "Watch and steer": {
        "live": "live:live",
        "replay": "live:replay",
    },
    "Look at results": {
        "report": "report:report",
        "publish": "report:publish",
    },
    "Use a stack by hand": {
        "up": "stack:up",
        "status": "stack:status",
        "verify": "stack:verify",
        "down": "stack:down",
    },
    "Engines and set-up": {
        "engines": "engines:list_engines",
        "check": "setup:check",
        "calibrate": "setup:calibrate",
        "images": "setup:images",
        "completion": "setup:completion",
    },
}

# Commands of earlier versions → the command that replaces each. The next release drops them.
REPLACED = {
    "sweep": "./race compare ENGINE... --plan sweep --load RATE,RATE...",
    "vary": "./race compare 'ENGINE[SETTING=VALUE|VALUE]' --plan vary --load RATE",
    "scale": "./race compare 'ENGINE[ENGINE_REPLICAS=1|2|4]' --plan scale --load RATE",
}


class Race(Command, click.Group):
    """The group of all commands. Help shows them under headings; each is imported when needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names of the commands, in the order in which help shows them."""
        return [name for names in COMMANDS.values() for name in names]

    def get_command(
        self,
        ctx: click.Context,  # noqa: ARG002
        cmd_name: str,
    ) -> click.Command | None:
        """Import and return the command with this name; None if there is no such command."""
        where = {name: at for names in COMMANDS.values() for name, at in names.items()}
        if cmd_name not in where:
            return None
        module, _, attribute = where[cmd_name].partition(":")
        command = getattr(importlib.import_module(f"racetrack.cli.{module}"), attribute)
        assert isinstance(command, click.Command)  # noqa: S101
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """For an unknown command, raise an error that suggests similar ones, or the command that
        replaces it."""
        if (old := args[0]) in REPLACED:
            raise click.UsageError(
                f"There is no command {old!r} any more, since plans replace it (docs/plans.md):"
                f" {REPLACED[old]}",
                ctx=ctx,
            )
        if args[0] not in self.list_commands(ctx) and not ctx.resilient_parsing:
            raise click.NoSuchCommand(args[0], possibilities=self.list_commands(ctx), ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Show the whole first paragraph of each command's help."""
        for heading, names in COMMANDS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, self._summary(ctx, name)) for name in names])

    def _summary(self, ctx: click.Context, name: str) -> str:
        command = self.get_command(ctx, name)
        text = (command and command.help) or ""
        return " ".join(text.split("\n\n")[0].split())


@click.group(cls=Race)
@click.version_option(__version__, prog_name="racetrack")
def race() -> None:
    """Put streaming engines on the same track, and report which keep up and at what cost.

    \b
    Examples:
        ./run_experiment.sh dh 5000 20 10 1.0    one experiment: 5,000 events/s for Deephaven
        ./race run dh --rate 5k                  the same, with named options
        ./race engines                           the engines that can be raced, and their settings
        ./race compare dh kstreams --quick       which engine is better, by how much, how certain
        ./race plan quick dh kstreams            what a plan does, and how long it takes
        ./race compare dh flink --plan sweep     several engines at several rates
        ./race live dh pg                        two engines side by side, steered in a browser
        ./race limit dh                          capacity, and the highest sustainable rate
        ./race report logs/*_sweep               tables and a page of runs
        ./race up dh                             start the stack and leave it running
        ./race down                              stop the running stack

    `./race COMMAND --help` explains a command.
    """


def unset_empty_settings() -> None:
    """Remove empty settings from the environment, so that their defaults apply. A setting whose
    default is empty, or that has none, stays."""
    if empty := [name for name, value in os.environ.items() if not value.strip()]:
        from racetrack.install.versions import in_env_files

        defaults = in_env_files()
        for name in empty:
            if defaults.get(name.upper()):
                del os.environ[name]


def main() -> None:
    """Run the command with which a shell script was called, or print completions for the shell."""
    # Until a command handles Ctrl-C itself. Click would exit with 1.
    signal.signal(signal.SIGINT, lambda number, _frame: sys.exit(128 + number))
    environment.settle()
    unset_empty_settings()
    with errors_to_exit_codes():
        renamed.in_environment(os.environ)
    arguments = sys.argv[1:]
    if arguments[:1] == [POSITIONAL_FORM]:
        from racetrack.cli.run import run_experiment

        run_experiment.main(
            arguments[1:], prog_name="./run_experiment.sh", complete_var=COMPLETE_VARIABLE
        )
    race.main(arguments, prog_name="./race", complete_var=COMPLETE_VARIABLE)
