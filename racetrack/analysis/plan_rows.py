"""Rows of comparisons, scaling measurements and capacity searches, from the records that their
commands write beside the run folders."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from racetrack.analysis import windows
from racetrack.analysis.table import CONDITIONS, Load, Place, Row, config_of, hashed, place_of
from racetrack.metrics import CAPACITY, sustained
from racetrack.results.folder import read_plan, read_run, run_beside
from racetrack.results.repeats import (
    COMPARISON_FILE,
    ComparisonRecord,
    RepeatedRuns,
    ScaleRecord,
)
from racetrack.results.search import LimitRecord


def read(folder: Path) -> tuple[list[Row], set[str]]:
    """Return the rows of a folder with the record of a comparison, a scaling measurement or a
    search, and the tags of its runs.

    Raises:
        UsageError: the record can't be read.
    """
    if (folder / "limit.json").is_file():
        search = read_plan(folder, LimitRecord)
        return list(rows_of_search(search, folder)), {run.tag for run in search.runs} - {""}
    model = ComparisonRecord if (folder / COMPARISON_FILE).is_file() else ScaleRecord
    record: RepeatedRuns = read_plan(folder, model)
    return list(rows_of_pieces(record, folder)), {piece.tag for piece in record.pieces} - {""}


def rows_of_pieces(record: RepeatedRuns, folder: Path) -> Iterator[Row]:
    """Yield a row for each window of a comparison or a scaling measurement."""
    for piece in record.pieces:
        path = run_beside(folder, piece.tag) if piece.tag else None
        known = {key: value for key, value in piece.figures.items() if value is not None}
        bounds = {CAPACITY.key} if piece.is_lower_bound else set()
        settings = {**record.settings.get(piece.engine, {}), "ENGINE_REPLICAS": str(piece.replicas)}
        common = _common(piece.engine, folder, path, settings)
        place = (
            common.place if path else Place(record.workload, record.runtime, str(record.machine))
        )
        yield replace(
            common,
            place=place,
            variant=str(piece),
            load=Load(piece.pageviews_per_s) if piece.pageviews_per_s is not None else None,
            window=piece.load,
            values={**known, **windows.memory(known)},
            tag=piece.tag,
            repeat=piece.repeat,
            verdict=piece.verdict,
            outcome=piece.outcome,
            at_least=frozenset(bounds),
            remark=piece.remark,
        )


def rows_of_search(record: LimitRecord, folder: Path) -> Iterator[Row]:
    """Yield the row of a capacity search: its capacity, and its sustained rates."""
    paths = [path for run in record.runs if (path := run_beside(folder, run.tag))]
    common = _common(record.engine, folder, paths[0] if paths else None, {})
    values = {
        sustained(one.bound_ms).key: float(one.sustained_per_s)
        for one in record.sustainable
        if one.sustained_per_s is not None
    }
    if record.capacity:
        values[CAPACITY.key] = record.capacity.per_s
    void = next((window.void for window in record.last_saturation() if window.void), None)
    is_whole = record.is_capacity_of_all_runs or not record.capacity
    yield replace(
        common,
        window="search",
        values=values,
        tag=folder.name,
        run_id=folder.name,
        outcome=void or ("ok" if record.capacity else record.outcome),
        at_least=frozenset() if is_whole else frozenset({CAPACITY.key}),
        remark="" if is_whole else record.outcome,
    )


def _common(engine: str, folder: Path, path: Path | None, settings: dict[str, str]) -> Row:
    """Return a row with what all windows of a run have in common."""
    run = read_run(path) if path else None
    known = config_of(run) if run else {key.lower(): value for key, value in settings.items()}
    config = {key: value for key, value in known.items() if key not in CONDITIONS}
    return Row(
        engine=engine,
        variant=engine,
        label=engine,
        place=place_of(run) if run else Place("", "", ""),
        load=None,
        window="",
        values={},
        experiment=folder.name,
        run_id=run.run_id if run else "",
        folder=path,
        config=config,
        conditions=hashed(config),
    )
