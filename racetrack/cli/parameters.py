"""Shared parameters of commands, and the exit codes of errors and signals."""

import difflib
import errno
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

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


def complete_engines(
    _context: click.Context, _parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Complete engines, and files otherwise."""
    names = [name for name in plugins.engine_names() if name.startswith(incomplete)]
    return [CompletionItem(name) for name in names] or [CompletionItem(incomplete, type="file")]


def refuse_rate() -> None:
    """Check that no rate was given in addition to --load.

    Raises:
        UsageError: a rate was given, too.
    """
    context = click.get_current_context()
    if context.get_parameter_source("rate") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--rate and --load exclude each other. Leave one out.")


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


class Variant(OneOf):
    """Parameter type of an engine, which may have settings, or of several on one input:
    `dh[DEEPHAVEN_HEAP=2g]`, `dh@tuned`, `dh+pg` or `dh,pg`. The value is a text of a plan."""

    name = "variant"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the text, in which engines are joined with `+`."""
        from racetrack.plan import variants

        text: str = value if "[" in value else value.replace(",", plugins.JOIN)
        try:
            (variant, *others) = variants.parse(text)
        except ValueError as error:
            self.fail(f"{error}.", param, ctx)
        if others:
            self.fail(f"{value} are several variants; ./race compare runs them.", param, ctx)
        for member in variant.members:
            super().convert(member.engine, param, ctx)
        return text


variant_argument = click.argument("engine", metavar="ENGINE", type=Variant(plugins.engine_names()))
engine_argument = click.argument("engine", metavar="ENGINE", type=ENGINES)


WORKLOAD_OPTION = click.option(
    "--workload",
    type=OneOf(plugins.workload_names()),
    help="The workload to run, instead of the setting WORKLOAD.",
)


QUERIES_OPTION = click.option(
    "--queries",
    help="The queries of a workload that has several, such as nexmark: one, or a set such as"
    " q0,q4 on one input.",
)


def load_settings(workload: str | None = None, queries: str | None = None) -> "Settings":
    """Load the settings. Print a warning for variables in the environment that look like a
    misspelled setting.

    Raises:
        UsageError: a setting is invalid, or was replaced by another one.
    """
    from racetrack import config as settings

    settings.refuse_replaced_in(os.environ)
    for name, hint in settings.unknown_in(os.environ).items():
        click.echo(
            f"Warning: {name} in the environment is ignored: there is no such setting.{hint}",
            err=True,
        )
    return settings.load(overrides_of(workload, queries))


def overrides_of(workload: str | None, queries: str | None = None) -> Mapping[str, str]:
    """Return the settings that `--workload` and `--queries` override; empty without options."""
    from racetrack.workloads.contract import overrides

    return overrides(workload, queries)


FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)


def resume_option(what: str) -> Callable[[Callback], Callback]:
    """Return the option `--resume`; `what` remains to be done."""
    return click.option(
        "--resume", metavar="FOLDER", type=FOLDER, help=f"Make the remaining {what}."
    )


# Parameters of results, which a command has whether it measures, goes on or only compares.
OF_RESULTS = ("json_file", "csv_file", "markdown_file", "conditions", "against")


def refuse_others(beside: str, why: str) -> None:
    """Check that no parameter is given but those of results and `beside`.

    Raises:
        UsageError: another one is.
    """
    context = click.get_current_context()
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        is_given = source is ParameterSource.COMMANDLINE
        if is_given and parameter.name not in (beside, *OF_RESULTS):
            is_option = isinstance(parameter, click.Option)
            given = parameter.opts[0] if is_option else parameter.human_readable_name
            raise click.UsageError(f"{why} Leave out {given}.")


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
VERIFY_OPTION = click.option(
    "--verify", is_flag=True, help="At the end, compare every view with its sources."
)
FAULT_OPTION = click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="FAULT",
    help="Inject a fault, at a time counted from when the rate was set: kill:SERVICE@10s,"
    " kill:SERVICE@10s+5s (restart after 5 s) or pause:SERVICE@10s+5s; or once the engine has"
    " counted so many, 'kill:SERVICE@500k events'. SERVICE is engine (of several, the engine's"
    " name), broker, debezium or mysql; pause also accepts registry and redis. On"
    " Kubernetes also delete:POD@10s, drain:NODE@10s+20s and cut:NODE@10s+20s"
    " (docs/faults.md). The run continues until the lag is back to normal, for at most 120 s. The"
    " option may be given several times.",
)
