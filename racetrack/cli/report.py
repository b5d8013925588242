"""`./race report` and `publish`: tables, reports and result files, made from run folders."""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from racetrack import plugins
from racetrack.cli.outputs import Output, output_options
from racetrack.cli.parameters import FOLDER, Command, errors_to_exit_codes
from racetrack.errors import UsageError

RESULTS, DOCS = plugins.REPO / "results", plugins.REPO / "docs"


@click.command(cls=Command)
@click.argument(
    "folders",
    nargs=-1,
    required=True,
    type=FOLDER,
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the files. Default: `report/` in the only folder, or a new folder next to the"
    " first.",
)
@output_options
def report(folders: tuple[Path, ...], out: Path | None, output: Output) -> None:
    """Report on FOLDERS of runs and experiments, or on all of them in a folder such as logs. Prints
    tables, and writes report.html, report.csv and report.json into a folder. Needs no stack, only
    files.

    \b
    Examples:
        ./race report logs/2026.03.22.05.04.28_UTC_dh_5000
        ./race report logs
        ./race report logs/*_UTC_dh_* logs/*_UTC_flink_* --out /tmp/both
        ./race report logs --json -
    """
    from racetrack.analysis import table
    from racetrack.report.html import write
    from racetrack.report.render import console, document, show
    from racetrack.report.runs import notes_of, read_runs, readable
    from racetrack.report.sheet import sheet
    from racetrack.terminal import showing_progress

    with errors_to_exit_codes():
        where = out or _where(folders)
        _require_writable(where)
        screen = console(sys.stderr if output.uses_stdout else None)
        with showing_progress(screen, "reading folders") as progress:
            rows = readable(table.read(folders), progress)
        runs = read_runs(rows)
        made = sheet(rows, notes=notes_of(runs, rows.rows))
        show(screen, made)
        with showing_progress(screen, "making charts") as progress:
            write(where, rows, made, runs, progress)
        screen.print(f"\n{where / 'report.html'}", markup=False, soft_wrap=True)
        output.write(document(made))


def _require_writable(out: Path) -> None:
    """Check, before any work is done, that the report's folder can be created and written to.

    Raises:
        UsageError: the folder can't be created or written to.
    """
    there = next(path for path in (out, *out.absolute().parents) if path.exists())
    try:
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        raise UsageError(
            f"The report can't be written to {out} ({there}: {error.strerror}). Name another"
            " folder with --out."
        ) from error


def _where(folders: tuple[Path, ...]) -> Path:
    if len(folders) == 1:
        return folders[0] / "report"
    return folders[0].resolve().parent / f"{datetime.now(UTC):%Y.%m.%d.%H.%M.%S}_UTC_report"


@click.command(cls=Command)
@click.argument(
    "folders",
    nargs=-1,
    type=FOLDER,
)
@click.option(
    "--variant",
    default="",
    metavar="NAME",
    help="Name of the configuration, if it is not the usual one of the engine, such as triggers.",
)
@click.option(
    "--results",
    "root",
    type=click.Path(file_okay=False, path_type=Path),
    default=RESULTS,
    help="Folder of the results. Default: `results/` in the repository.",
)
@click.option(
    "--pages",
    "docs",
    type=click.Path(file_okay=False, path_type=Path),
    default=DOCS,
    help="Folder for the pages index.html, which compares all results, results.md and choosing.md."
    " Default: `docs/` in the repository.",
)
@click.option(
    "--check",
    "is_check",
    is_flag=True,
    help="Write nothing: check that the figures of all results agree with each other, and that the"
    " pages are theirs. The exit code is 1 if not.",
)
def publish(
    folders: tuple[Path, ...], variant: str, root: Path, docs: Path, is_check: bool
) -> None:
    """Write the results of FOLDERS of runs and experiments as data, and generate
    the pages that show all results. Without FOLDERS, only generate the pages. Results in the
    previous format are written again. Needs no stack, only files.

    There is one result for each workload, machine and version of an engine:
    results/<workload>/<machine>/<engine>@<version>.json. It replaces an earlier one, so name all
    folders of an engine together; they must have the same settings and versions. Void and failed
    runs, and runs with faults, are left out; the result lists them. The exit code is 1 if --check
    would refuse a result.

    \b
    Examples:
        ./race publish logs/2026.11.26.05.40.00_UTC_full
        ./race publish logs/*_UTC_full logs/*_UTC_dh_5000
        ./race publish logs/2026.11.26.05.40.00_UTC_full --variant triggers
        ./race publish
        ./race publish --check
    """
    from racetrack import engines
    from racetrack.report import pages, result_check
    from racetrack.report import publish as publishing
    from racetrack.results.folder import shown

    with errors_to_exit_codes():
        titles = {
            engine.name: engine.title for engine in engines.all_engines() if engine.script_ending
        }
        if is_check:
            if folders or variant:
                raise UsageError(
                    "--check reads published results alone: omit FOLDERS and --variant."
                )
            _check(root, docs, titles)
            return
        if folders:
            names = {
                engine.name: publishing.EngineName(engine.title, engine.version_part)
                for engine in engines.all_engines()
            }
            for path in publishing.publish(folders, root, names, variant, _say):
                click.echo(shown(path))
        for path in publishing.renew(root):
            click.echo(shown(path))
        for page in pages.write(root, docs, titles):
            click.echo(shown(page))
        if folders:
            _end_if_any(result_check.faults(root))


def _check(root: Path, docs: Path, titles: Mapping[str, str]) -> None:
    from racetrack.report import pages, result_check
    from racetrack.results.folder import shown

    faults = result_check.faults(root)
    if not faults:
        faults = [
            f"{shown(page)} is not the page of these results: run `./race publish`"
            for page in pages.outdated(root, docs, titles)
        ]
    _end_if_any(faults)
    click.echo(
        f"{len(list(root.rglob('*.json')))} results: their figures agree, and the pages are theirs"
    )


def _end_if_any(faults: Sequence[str]) -> None:
    for line in faults:
        click.echo(line)
    if faults:
        sys.exit(1)


def _say(line: str) -> None:
    click.echo(line, err=True)
