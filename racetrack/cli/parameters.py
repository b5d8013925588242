"""Shared parameters of commands, and the exit codes of errors and signals."""

import difflib
import errno
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

from racetrack import plugins, terminal, units
from racetrack.errors import RacetrackError

if TYPE_CHECKING:
    from racetrack.config import Settings
    from racetrack.terminal import Screen
    from racetrack.workloads.load_profile import LoadProfile

# Where exit codes are documented: the help of every command ends with this.
EXIT_CODES = """
\b
Exit codes:
    0    done as asked
    1    it ran, but failed
    2    an argument or a setting can't be used
    3    something is missing that could not be installed
    4    the machine, a port or the stack is in use
    5    the run is void, because other programs used the machine
    6    a condition of --fail-if holds
    130  interrupted by Ctrl-C; 143 by SIGTERM
"""
CONDITION_EXIT_CODE = 6
HELP_WIDTH = 100
POSITIVE_S = 0.001  # minimum of durations above 0

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)

Value = TypeVar("Value")


class Command(click.Command):
    """A command whose help ends with the exit codes, and that also answers `-h`."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        attributes.setdefault("epilog", EXIT_CODES)
        attributes["context_settings"] = {
            "help_option_names": ["-h", "--help"],
            "max_content_width": HELP_WIDTH,
            **(attributes.get("context_settings") or {}),
        }
        super().__init__(*args, **attributes)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Report `-5` as negative, not as an unknown option."""
        for word in args:
            if word[:1] == "-" and word[1:2].isdigit():
                raise click.UsageError(f"{word} is negative: no argument takes that.", ctx)
        return super().parse_args(ctx, args)


class _Parsed(click.ParamType[Value]):
    """Parameter type that uses a parser of `racetrack.units`."""

    parse: Callable[[str], Value]
    least: float = 0

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> Value:
        if not isinstance(value, str):
            return value  # type: ignore[return-value]  # a default that needs no parsing
        try:
            parsed = type(self).parse(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if isinstance(parsed, int | float) and parsed < self.least:
            self.fail(f"{value!r} is {self.too_small()}", param, ctx)
        return parsed

    def too_small(self) -> str:
        """Describe a value below the minimum."""
        return f"less than {self.least:g}"


class Rate(_Parsed[int]):
    """Events per second, such as `5000`, `5k` or `1.5M`."""

    name = "rate"
    parse = staticmethod(units.parse_rate)

    def __init__(self, least: int = 0) -> None:
        self.least = least


class Duration(_Parsed[float]):
    """Seconds, from a duration such as `20s`, `2m` or `20`."""

    name = "duration"
    parse = staticmethod(units.parse_duration_s)

    def __init__(self, least_s: float = 0) -> None:
        self.least = least_s

    def too_small(self) -> str:
        """Describe a duration below the minimum."""
        if self.least == POSITIVE_S:
            return "no time at all"
        return f"shorter than {self.least:g} s; minutes are written as 25m"


class Rates(_Parsed[list[int]]):
    """Rates with commas between them, such as `50,5k,35000`."""

    name = "rate,rate..."

    @staticmethod
    def parse(text: str) -> list[int]:
        """Return each rate."""
        return [units.parse_rate(word) for word in text.split(",")]


class Load(_Parsed["LoadProfile"]):
    """A load profile, such as `spike 5k 50k 10s`."""

    name = "load"

    @staticmethod
    def parse(text: str) -> "LoadProfile":
        """Return the profile."""
        from racetrack.workloads import load_profile

        return load_profile.parse(text)


class OneOf(click.Choice[str]):
    """A choice that suggests the nearest name for a misspelled one."""

    def get_invalid_choice_message(
        self,
        value: object,
        ctx: click.Context | None,  # noqa: ARG002
    ) -> str:
        """Suggest the nearest choice, and list all."""
        near = difflib.get_close_matches(str(value), self.choices, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        return f"there is no {value!r}.{hint} There are {', '.join(self.choices)}."


ENGINES = OneOf(plugins.engine_names())


@contextmanager
def guarded(screen: "Screen") -> Iterator[terminal.Guard]:
    """Handle signals with a guard, and turn errors into exit codes."""
    with errors_to_exit_codes(), terminal.guarded(screen.say) as guard:
        yield guard


@contextmanager
def errors_to_exit_codes() -> Iterator[None]:
    """Turn errors that a user can act on into a message and an exit code."""
    try:
        yield
    except RacetrackError as error:
        say_error(error)
        sys.exit(error.exit_code)
    except OSError as error:
        if error.errno in NO_ROOM:
            click.echo(
                f"Error: {error.filename or 'LOGS_FOLDER'}: {error.strerror}. The run has ended and"
                " is not complete. Free some room there, or set LOGS_FOLDER to a folder on another"
                " disk.",
                err=True,
            )
            sys.exit(1)
        if error.filename is None:
            raise  # without a file name it is a bug
        click.echo(
            f"Error: {error.filename}: {error.strerror}. Racetrack has to read and write there;"
            " make room, fix its permissions, or use another folder.",
            err=True,
        )
        sys.exit(1)
    except terminal.Interrupted as interrupted:
        click.echo(f"{interrupted}", err=True)
        sys.exit(interrupted.exit_code)


def say_error(error: RacetrackError) -> None:
    """Print an error that a user can act on."""
    click.echo(f"Error: {error}", err=True)


engine_argument = click.argument("engine", metavar="ENGINE", type=ENGINES)


WORKLOAD_OPTION = click.option(
    "--workload",
    type=OneOf(plugins.workload_names()),
    help="The workload to race on, in place of the setting WORKLOAD.",
)


def load_settings(workload: str | None = None) -> "Settings":
    """Load the settings; warn about unknown names in the environment that look like one.

    Raises:
        UsageError: a setting can't be used.
    """
    from racetrack import config as settings

    for name, hint in settings.unknown_in(os.environ).items():
        click.echo(
            f"Warning: {name} in the environment is ignored: there is no such setting.{hint}",
            err=True,
        )
    return settings.load(overrides_of(workload))


def given_in_environment() -> frozenset[str]:
    """Return the names that are set in the environment, where the user's own settings are."""
    return frozenset(os.environ)


def overrides_of(workload: str | None) -> Mapping[str, str]:
    """Return the overrides for `--workload`; empty without it."""
    return {"WORKLOAD": workload} if workload else {}


DECIDE_OPTION = click.option(
    "--decide-within",
    type=Duration(),
    envvar="DECIDE_WITHIN",
    show_envvar=True,
    default="120s",
    show_default=True,
    help="After the samples, keep the load on and watch until the verdict is decided, for this"
    " long at most. 0 judges the sampling window alone. With --fault or --load it is 0.",
)
VERIFY_OPTION = click.option(
    "--verify", is_flag=True, help="At the end, compare every view with its sources."
)
FAULT_OPTION = click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="FAULT",
    help="Cause trouble, at a time counted from when the rate was set: kill:SERVICE@10s,"
    " kill:SERVICE@10s+5s (it stays dead for 5 s) or pause:SERVICE@10s+5s. SERVICE is engine,"
    " broker, debezium or mysql; pause also takes registry and redis. The run goes on until lag is"
    " back to normal, for 120 s at most. The option may be given several times.",
)
