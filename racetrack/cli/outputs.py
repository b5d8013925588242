"""Options of commands that have a result. `--json`, `--csv` and `--markdown` write it to files;
`--fail-if` gives conditions on it, which may be changes relative to the baseline of `--against`."""

import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from racetrack.cli.parameters import CONDITION_EXIT_CODE

if TYPE_CHECKING:
    from racetrack.analysis.table import Row, Table
    from racetrack.report.gate import Condition
    from racetrack.report.render import Document
    from racetrack.report.sheet import Sheet
    from racetrack.terminal import Screen

STDOUT = "-"


class OutputFile(click.Path):
    """Type of an option for an output file, or `-`. The folder is checked before hours are spent on
    measurements."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        path = str(super().convert(value, param, ctx))
        if path != STDOUT and not Path(path).absolute().parent.is_dir():
            self.fail(f"{path!r}: there is no folder {Path(path).parent}.", param, ctx)
        return path


@dataclass(frozen=True)
class Output:
    """Destinations of the records. `files` maps a format (`json`, `csv`, `markdown`) to a file or
    `-`."""

    files: dict[str, str]

    @property
    def uses_stdout(self) -> bool:
        """True if a format is written to standard output."""
        return STDOUT in self.files.values()

    def screen(self) -> "Screen":
        """Return the command's screen, which is on standard error if records are written to
        standard output."""
        from racetrack.terminal import Screen, patient_console

        return Screen(patient_console(sys.stderr) if self.uses_stdout else None)

    def show(self, sheet: "Sheet") -> None:
        """Print a sheet, and write it in each requested format."""
        from racetrack.report.render import console, document, show

        show(console(sys.stderr if self.uses_stdout else None), sheet)
        self.write(document(sheet))

    def write(self, document: "Document") -> None:
        """Write the document in each requested format."""
        for form, path in self.files.items():
            text: str = getattr(document, f"as_{form}")()
            if path == STDOUT:
                click.echo(text, nl=False)
            else:
                Path(path).write_text(text, encoding="utf-8")


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options `--json`, `--csv` and `--markdown` to a command, which receives them as the
    argument `output`."""
    file_option = functools.partial(
        click.option, metavar="FILE", type=OutputFile(dir_okay=False, allow_dash=True)
    )

    @file_option(
        "--json",
        "json_file",
        help="Write flat records of the result, such as one per run, as JSON (docs/run-folder.md"
        " describes their keys). Use - for standard output.",
    )
    @file_option("--csv", "csv_file", help="Write the same records as CSV.")
    @file_option(
        "--markdown", "markdown_file", help="Write a table of the main figures as Markdown."
    )
    @functools.wraps(command)
    def with_output(*args: Any, **options: Any) -> Any:
        paths = {form: options.pop(f"{form}_file") for form in ("json", "csv", "markdown")}
        files = {form: path for form, path in paths.items() if path}
        if list(files.values()).count(STDOUT) > 1:
            raise click.UsageError("Only one of --json, --csv and --markdown can be -.")
        return command(*args, output=Output(files), **options)

    return with_output


@dataclass(frozen=True)
class Gate:
    """The conditions of `--fail-if`, and the baseline of `--against`, to which changes are
    relative."""

    conditions: "Sequence[Condition]" = ()
    baseline: "Table | None" = None

    def require_comparable(self, *places: tuple[str, str, str]) -> None:
        """Check that the baseline, if there is one, has the workload, runtime and broker of each of
        these places.

        Raises:
            UsageError: it does not.
        """
        from racetrack.report.gate import require_comparable

        if self.baseline:
            require_comparable(places, self.baseline.rows)

    def exit_code(self, rows: "Sequence[Row]", screen: "Screen") -> int:
        """Print each condition that holds for any variant and load. Return the exit code.

        Raises:
            UsageError: the baseline has another workload, runtime or broker.
        """
        from racetrack.report.gate import failures

        self.require_comparable(*(row.place.comparable for row in rows))
        reasons = failures(self.conditions, rows, self.baseline.rows if self.baseline else ())
        for reason in reasons:
            screen.heading(reason)
        return CONDITION_EXIT_CODE if reasons else 0


def gate_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options `--fail-if` and `--against` to a command, which receives them as the argument
    `gate`."""

    @click.option(
        "--fail-if",
        "conditions",
        multiple=True,
        metavar="CONDITION",
        help="Exit with code 6 if this holds for any engine and rate: a bound such as"
        " 'lag_p99_ms>2000', a change such as 'cpu_s_per_million>+10%' relative to --against, or"
        " fell_behind. The option may be given several times.",
    )
    @click.option(
        "--against",
        multiple=True,
        metavar="PATH",
        type=click.Path(exists=True, path_type=Path),
        help="Baseline for changes: the folder of a run or an experiment, a file written with"
        " --json, or a file in results/. The option may be given several times.",
    )
    @functools.wraps(command)
    def with_gate(
        *args: Any, conditions: tuple[str, ...], against: tuple[Path, ...], **options: Any
    ) -> Any:
        return command(*args, gate=make_gate(conditions, against), **options)

    return with_gate


def make_gate(texts: Sequence[str], against: Sequence[Path]) -> Gate:
    """Parse the conditions and read the baseline. Called before hours are spent on measurements.

    Raises:
        click.UsageError: a condition is invalid, or is relative but there is no baseline.
    """
    if not texts and not against:
        return Gate()
    from racetrack.analysis import table
    from racetrack.cli.parameters import errors_to_exit_codes
    from racetrack.report.gate import parse

    try:
        conditions = [parse(text) for text in texts]
    except ValueError as error:
        raise click.UsageError(f"--fail-if: {error}.") from error
    relative = [condition.text for condition in conditions if condition.is_relative]
    if relative and not against:
        raise click.UsageError(f"--fail-if '{relative[0]}' needs a baseline. Add --against PATH.")
    with errors_to_exit_codes():
        return Gate(conditions, table.read(against) if against else None)
