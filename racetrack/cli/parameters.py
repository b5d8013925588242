"""Shared parameters of commands, and the exit codes of errors and signals."""

import difflib
import errno
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import click
from click.core import ParameterSource

from racetrack import plugins, terminal, units
from racetrack.errors import RacetrackError

if TYPE_CHECKING:
    from racetrack.config import Settings
    from racetrack.terminal import Screen
    from racetrack.workloads.load_profile import LoadProfile

# The help of every command ends with this text, which documents the exit codes.
EXIT_CODES = """
\b
Exit codes:
    0    success
    1    it ran, but failed
    2    an argument or a setting can't be used
    3    something is missing that could not be installed, or can't be used
    4    the machine, a port or the stack is in use
    5    the run is void, because other programs used the machine, or a CPU quota stopped it
    6    a condition of --fail-if holds
    130  interrupted by Ctrl-C; 143 by SIGTERM
"""
CONDITION_EXIT_CODE = 6
HELP_WIDTH = 100
POSITIVE_S = 0.001  # minimum of durations above 0

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)

Value = TypeVar("Value")
Callback = TypeVar("Callback", bound=Callable[..., Any])


class Command(click.Command):
    """A command whose help ends with the exit codes, and which also accepts `-h` for help."""

    def __init__(self, *args: Any, **attributes: Any) -> None:
        attributes.setdefault("epilog", EXIT_CODES)
        attributes["context_settings"] = {
            "help_option_names": ["-h", "--help"],
            "max_content_width": HELP_WIDTH,
            **(attributes.get("context_settings") or {}),
        }
        super().__init__(*args, **attributes)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Report an argument such as `-5` as a negative number instead of as an unknown option."""
        for word in args:
            if word[:1] == "-" and word[1:2].isdigit():
                raise click.UsageError(f"{word} is negative. Give a positive number, or 0.", ctx)
        return super().parse_args(ctx, args)


class _Parsed(click.ParamType[Value]):
    """Base class of parameter types that use a parser of `racetrack.units`."""

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
        """Return a text on a value below the minimum."""
        return f"less than {self.least:g}"


class Rate(_Parsed[int]):
    """Parameter type of a rate in events per second, such as `5000`, `5k` or `1.5M`."""

    name = "rate"
    parse = staticmethod(units.parse_rate)

    def __init__(self, least: int = 0) -> None:
        self.least = least


class Duration(_Parsed[float]):
    """Parameter type of a duration such as `20s`, `2m` or `20`. The value is in seconds."""

    name = "duration"
    parse = staticmethod(units.parse_duration_s)

    def __init__(self, least_s: float = 0) -> None:
        self.least = least_s

    def too_small(self) -> str:
        """Return a text on a duration below the minimum."""
        if self.least == POSITIVE_S:
            return "not longer than 0 s"
        return f"shorter than {self.least:g} s; minutes are written as 25m"


class Rates(_Parsed[list[int]]):
    """Parameter type of a list of rates, separated by commas, such as `50,5k,35000`."""

    name = "rate,rate..."

    @staticmethod
    def parse(text: str) -> list[int]:
        """Parse a list of rates."""
        return [units.parse_rate(word) for word in text.split(",")]


class Counts(_Parsed[list[int]]):
    """Parameter type of a list of numbers above 0, separated by commas, such as `1,2,4`."""

    name = "number,number..."

    @staticmethod
    def parse(text: str) -> list[int]:
        """Parse a list of numbers."""
        words = [word.strip() for word in text.split(",")]
        if wrong := [word for word in words if not word.isdecimal() or int(word) < 1]:
            raise ValueError(f"{wrong[0]!r} is not a whole number above 0; write 1,2,4")
        return [int(word) for word in words]


class Load(_Parsed["LoadProfile"]):
    """Parameter type of a load profile, such as `spike 5k 50k 10s`."""

    name = "load"

    @staticmethod
    def parse(text: str) -> "LoadProfile":
        """Parse a load profile."""
        from racetrack.workloads import load_profile

        return load_profile.parse(text)


class OneOf(click.Choice[str]):
    """Parameter type of a choice. For an unknown name, the error suggests the most similar one."""

    def get_invalid_choice_message(
        self,
        value: object,
        ctx: click.Context | None,  # noqa: ARG002
    ) -> str:
        """Return an error message that suggests the most similar choice and lists all choices."""
        near = difflib.get_close_matches(str(value), self.choices, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        return f"there is no {value!r}.{hint} There are {', '.join(self.choices)}."


ENGINES = OneOf(plugins.engine_names())


def refuse_rate() -> None:
    """Check that no rate was given in addition to --load.

    Raises:
        UsageError: a rate was given, too.
    """
    context = click.get_current_context()
    for name in ("rate", "rates"):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"--{name} and --load exclude each other. Leave one out.")


@dataclass(frozen=True)
class Offered:
    """Load of a run: the mean rate in events per second, and the text of the load profile if the
    rate changes. The samples then cover the profile."""

    rate_per_s: int
    samples: int
    load: str | None = None

    @classmethod
    def of(cls, load: "LoadProfile | None", rate_per_s: int, samples: int, every_s: float) -> Self:
        """Return the load that the options of a command describe. `load` replaces `rate_per_s`.

        Raises:
            UsageError: both --load and a rate were given.
        """
        if not load:
            return cls(rate_per_s, samples)
        refuse_rate()
        if not load.duration_s:
            return cls(load.rate_at(0.0), samples)
        mean_per_s = max(1, round(load.mean_per_s))
        return cls(mean_per_s, max(samples, ceil(load.duration_s / every_s)), str(load))


@contextmanager
def guarded(screen: "Screen") -> Iterator[terminal.Guard]:
    """Handle signals with a guard, and convert errors to messages and exit codes."""
    with errors_to_exit_codes(), terminal.guarded(screen.say) as guard:
        yield guard


@contextmanager
def errors_to_exit_codes() -> Iterator[None]:
    """Convert errors that a user can fix to a message and an exit code."""
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
            raise  # an OSError without a file name is a bug
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
    """Print an error that a user can fix."""
    click.echo(f"Error: {error}", err=True)


class Engines(OneOf):
    """Parameter type of an engine, or of several on one input, separated by commas: `dh,pg`. The
    value is the name of the engine or of the group: `dh+pg`."""

    name = "engines"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name of the engine or group."""
        names = [super(Engines, self).convert(each, param, ctx) for each in value.split(",")]
        return plugins.JOIN.join(names)


engines_argument = click.argument("engine", metavar="ENGINE", type=Engines(plugins.engine_names()))
engine_argument = click.argument("engine", metavar="ENGINE", type=ENGINES)


WORKLOAD_OPTION = click.option(
    "--workload",
    type=OneOf(plugins.workload_names()),
    help="The workload to run, instead of the setting WORKLOAD.",
)


def load_settings(workload: str | None = None) -> "Settings":
    """Load the settings. Print a warning for variables in the environment that look like a
    misspelled setting.

    Raises:
        UsageError: a setting is invalid.
    """
    from racetrack import config as settings

    for name, hint in settings.unknown_in(os.environ).items():
        click.echo(
            f"Warning: {name} in the environment is ignored: there is no such setting.{hint}",
            err=True,
        )
    return settings.load(overrides_of(workload))


def given_in_environment() -> frozenset[str]:
    """Return the names of all environment variables, which include the settings that the user has
    set."""
    return frozenset(os.environ)


def overrides_of(workload: str | None) -> Mapping[str, str]:
    """Return the setting that `--workload` overrides; empty without the option."""
    return {"WORKLOAD": workload} if workload else {}


FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


def resume_option(what: str) -> Callable[[Callback], Callback]:
    """Return the option `--resume`; `what` remains to be done."""
    return click.option(
        "--resume", metavar="FOLDER", type=FOLDER, help=f"Make the remaining {what}."
    )


DECIDE_OPTION = click.option(
    "--decide-within",
    type=Duration(),
    envvar="DECIDE_WITHIN",
    show_envvar=True,
    default="120s",
    show_default=True,
    help="Longest time to keep the load running after the samples until the verdict is decided."
    " With 0, only the sampling window is judged. With --fault or --load it is always 0.",
)
LOAD_OPTION = click.option(
    "--load",
    type=Load(),
    metavar="PROFILE",
    help="A rate that changes, instead of one rate: 'constant 5k', 'ramp 1k 50k 60s' (from, to,"
    " duration), 'steps 1k,5k,20k 30s' (each for 30 s), 'spike 5k 50k 10s' (base, peak, duration of"
    " the peak, which begins after 10 s), 'sine 5k 20k 60s' (low, high, period) or 'recorded"
    " FILE.csv' (rows of seconds and rates). The engine settles at the first rate. The profile"
    " begins with the samples, which are taken until its end. After a spike, the run continues"
    " until the lag is back to normal, for at most 120 s.",
)


def settle_option(default: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option `--settle`, whose value is in seconds."""
    return click.option(
        "--settle",
        type=Duration(),
        default=default,
        show_default=True,
        help="Time to settle before samples are taken. Java compiles for about a minute.",
    )


VERIFY_OPTION = click.option(
    "--verify", is_flag=True, help="At the end, compare every view with its sources."
)
FAULT_OPTION = click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="FAULT",
    help="Inject a fault, at a time counted from when the rate was set: kill:SERVICE@10s,"
    " kill:SERVICE@10s+5s (restart after 5 s) or pause:SERVICE@10s+5s. SERVICE is engine (of"
    " several, the engine's name), broker, debezium or mysql; pause also accepts registry and"
    " redis. On Kubernetes also delete:POD@10s, drain:NODE@10s+20s and cut:NODE@10s+20s"
    " (docs/faults.md). The run continues until the lag is back to normal, for at most 120 s. The"
    " option may be given several times.",
)
