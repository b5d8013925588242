"""The page that ranks engines, docs/index.html, which is generated from the files in `results/`.

The page contains all data, so it works offline from `file://`. It does not contain the time of its
generation, so the same results give the same page.
"""

import json
from pathlib import Path
from typing import Any

from racetrack.errors import UsageError
from racetrack.report.html import environment, own_file
from racetrack.results.folder import read_record
from racetrack.results.json_file import write_whole
from racetrack.results.published import EngineResult

CHARTS = ("lag", "cpu", "distribution")


def write(root: Path, page: Path) -> None:
    """Write the page from all results below `root`.

    Raises:
        UsageError: a file is not a result, or its path does not match its content.
    """
    page.parent.mkdir(parents=True, exist_ok=True)
    write_whole(page, ranking_page(root))


def ranking_page(root: Path) -> str:
    """Return the page with all results below `root`.

    Raises:
        UsageError: a file is not a result, or its path does not match its content.
    """
    return (
        environment()
        .get_template("ranking.html.j2")
        .render(
            results=read_results(root),
            charts=CHARTS,
            licence=own_file("uplot/LICENSE"),
            css=own_file("uplot/uPlot.min.css") + own_file("page.css") + own_file("ranking.css"),
            uplot=own_file("uplot/uPlot.iife.min.js"),
            charts_js=own_file("charts.js"),
            ranking_js=own_file("ranking.js"),
        )
    )


def read_results(root: Path) -> list[dict[str, Any]]:
    """Return all results below `root`, sorted by path. `path` of each is its path below `root`.

    Raises:
        UsageError: a file is not a result, or its path does not match its content.
    """
    found = []
    for file in sorted(root.rglob("*.json")):
        result = read_record(file, EngineResult)
        path = file.relative_to(root).as_posix()
        if path != result.file_name:
            raise UsageError(
                f"The content of {file} belongs into {result.file_name}: move the file, or publish"
                " the result again."
            )
        found.append({"path": path, **json.loads(result.as_text())})
    return found
