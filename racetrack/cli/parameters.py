"""What the commands share: their parameters, and how errors and signals become exit codes."""

import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import click

from racetrack import engines, interrupts, plugins
from racetrack.errors import RacetrackError
from racetrack.screen import Screen

EXIT_CODES = """
\b
Exit codes: 0 done as asked, 1 it ran but failed, 2 wrong usage or setting,
3 something could not be installed, 4 the machine, a port or the stack is in use,
5 the run is void because other programs used the machine, 130 and 143 interrupted.
"""


class Seconds(click.ParamType[float]):
    """A positive, finite number of seconds."""

    name = "seconds"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        try:
            seconds = float(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a number of seconds", param, ctx)
        if not (math.isfinite(seconds) and seconds > 0):
            self.fail(f"{value!r} is not a positive number of seconds", param, ctx)
        return seconds


class Within(click.ParamType[float]):
    """Seconds with or without their unit (`120s`, `120`); 0 turns something off."""

    name = "seconds"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        text = str(value).removesuffix("s")
        return 0.0 if text == "0" else Seconds().convert(text, param, ctx)


class Numbers(click.ParamType[list[int]]):
    """Whole numbers with commas between them, such as `50,5000,35000`."""

    name = "numbers"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> list[int]:
        words = str(value).split(",")
        if not all(word.isdecimal() for word in words):
            self.fail(f"{value!r} is not a list of whole numbers such as 50,5000", param, ctx)
        return [int(word) for word in words]


@contextmanager
def guarded(screen: Screen) -> Iterator[interrupts.Guard]:
    """Signals go to the guard, errors become exit codes."""
    with errors_to_exit_codes(), interrupts.guarded(screen.say) as guard:
        yield guard


@contextmanager
def errors_to_exit_codes() -> Iterator[None]:
    """Errors that a user can act on become one message and an exit code."""
    try:
        yield
    except RacetrackError as error:
        say_error(error)
        sys.exit(error.exit_code)
    except OSError as error:
        if error.filename is None:
            raise  # no file of the user's: a fault of ours
        click.echo(
            f"Error: {error.filename}: {error.strerror}. Racetrack has to read and write there;"
            " make room, fix its permissions, or use another folder.",
            err=True,
        )
        sys.exit(1)
    except interrupts.Interrupted as interrupted:
        click.echo(f"{interrupted}", err=True)
        sys.exit(interrupted.exit_code)


def say_error(error: RacetrackError) -> None:
    """As every command says one that a user can act on."""
    click.echo(f"Error: {error}", err=True)


class ExampleCommand(click.Command):
    """A command whose help has examples: `{engine}` stands for one there is, `{other}` for one that
    it is compared with. They are looked up only for whoever asks for help."""

    def get_help(self, ctx: click.Context) -> str:
        return with_examples(super().get_help(ctx))


class ExampleGroup(click.Group, ExampleCommand):
    """The same for a group of commands."""


def with_examples(text: str) -> str:
    """The text with the names of engines in it."""
    published = [engine.name for engine in engines.all_engines() if engine.is_published]
    engine = engines.example_engine().name
    other = next((name for name in published if name != engine), engine)
    return text.replace("{engine}", engine).replace("{other}", other)


engine_argument = click.argument(
    "engine", metavar="ENGINE", type=click.Choice(engines.engine_names())
)


WORKLOAD_OPTION = click.option(
    "--workload",
    type=click.Choice(plugins.workload_names()),
    help="What is raced on, whatever WORKLOAD says.",
)


def overrides_of(workload: str | None) -> Mapping[str, str]:
    """What `settings.load` takes for a --workload; nothing where none was given."""
    return {"WORKLOAD": workload} if workload else {}


DECIDE_OPTION = click.option(
    "--decide-within",
    type=Within(),
    envvar="DECIDE_WITHIN",
    show_envvar=True,
    default="120s",
    show_default=True,
    metavar="SECONDS",
    help="After the samples, watch on until the verdict is decided, for so long at most, with the"
    " load still on. 0: judge the sampling window alone. With --fault it is 0.",
)
