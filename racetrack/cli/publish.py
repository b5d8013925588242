"""`./race publish`: creates result files from run folders, and the pages that show them."""

from pathlib import Path

import click

from racetrack import plugins
from racetrack.cli.parameters import Command, errors_to_exit_codes

RESULTS = plugins.REPO / "results"
DOCS = plugins.REPO / "docs"


@click.command(cls=Command)
@click.argument(
    "folders",
    nargs=-1,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
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
    help="Folder for the pages index.html, which ranks all results, and results.md. Default:"
    " `docs/` in the repository.",
)
def publish(folders: tuple[Path, ...], variant: str, root: Path, docs: Path) -> None:
    """Write the results of FOLDERS of runs, sweeps, searches and comparisons as data, and generate
    the pages that show all results. Without FOLDERS, only generate the pages. Needs no stack, only
    files.

    There is one result for each workload, machine and version of an engine:
    results/<workload>/<machine>/<engine>@<version>.json. It replaces an earlier one, so name all
    folders of an engine together; they must have the same settings and versions. Void and failed
    runs, and runs with faults, are left out; the result lists them.

    \b
    Examples:
        ./race publish logs/*_UTC_sweep logs/*_UTC_dh_limit
        ./race publish logs/2026.11.26.05.40.00_UTC_compare
        ./race publish logs/2026.11.26.05.40.00_UTC_sweep --variant triggers
        ./race publish
    """
    from racetrack import engines
    from racetrack.report import publish as publishing
    from racetrack.report import ranking
    from racetrack.results.folder import shown

    with errors_to_exit_codes():
        if folders:
            names = {
                engine.name: publishing.EngineName(engine.title, engine.version_part)
                for engine in engines.all_engines()
            }
            for path in publishing.publish(folders, root, names, variant):
                click.echo(shown(path))
        for page in ranking.write(root, docs):
            click.echo(shown(page))
