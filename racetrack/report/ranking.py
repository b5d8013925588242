"""The page that ranks engines, docs/index.html, which is generated from the files in `results/`.

The page contains all data, so it works offline from `file://`. It does not contain the time of its
generation, so the same results give the same page.
"""

import json
from collections.abc import Sequence
from os.path import relpath
from pathlib import Path

from racetrack.errors import UsageError
from racetrack.report.html import environment, own_file
from racetrack.report.results_page import results_page
from racetrack.results.folder import read_record
from racetrack.results.json_file import write_whole
from racetrack.results.published import EngineResult

CHARTS = ("lag", "cpu", "distribution")


def write(root: Path, folder: Path) -> list[Path]:
    """Write the pages index.html and results.md into `folder` from all results below `root`. Return
    their paths.

    Raises:
        UsageError: a file is not a result, or its path does not match its content.
    """
    results = read_results(root)
    pages = {
        folder / "index.html": ranking_page(results),
        folder / "results.md": results_page(results, relpath(root, folder)),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for page, text in pages.items():
        write_whole(page, text)
    return list(pages)


def ranking_page(results: Sequence[EngineResult]) -> str:
    """Return the page that ranks these results."""
    return (
        environment()
        .get_template("ranking.html.j2")
        .render(
            results=[{"path": of.file_name, **json.loads(of.as_text())} for of in results],
            charts=CHARTS,
            licence=own_file("uplot/LICENSE"),
            css=own_file("uplot/uPlot.min.css") + own_file("page.css") + own_file("ranking.css"),
            uplot=own_file("uplot/uPlot.iife.min.js"),
            charts_js=own_file("charts.js"),
            ranking_js=own_file("ranking.js"),
        )
    )


def read_results(root: Path) -> list[EngineResult]:
    """Return all results below `root`, sorted by path.

    Raises:
        UsageError: a file is not a result, or its path does not match its content.
    """
    found = []
    for file in sorted(root.rglob("*.json")):
        result = read_record(file, EngineResult)
        if file.relative_to(root).as_posix() != result.file_name:
            raise UsageError(
                f"The content of {file} belongs into {result.file_name}: move the file, or publish"
                " the result again."
            )
        found.append(result)
    return found
