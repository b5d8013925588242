"""Tests that a run's probes depend on the settings and on the engine."""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from racetrack.config import load
from racetrack.engines.contract import Engine
from racetrack.probes.base import no_outage
from racetrack.probes.loadgen import ArrivalsProbe
from racetrack.results.folder import RunFolder
from racetrack.run import engine_run
from tests.run.fakes import FakeEngine, FakeStack

WITH_CDC, NO_CDC = FakeEngine(), FakeEngine(needs=())


def names(
    folder: Path,
    engine: Engine = WITH_CDC,
    settings: Mapping[str, str] | None = None,
    *,
    has_faults: bool = False,
) -> list[str]:
    """Return the names of the classes of a run's probes."""
    stack, run = (
        FakeStack(load(settings)).as_stack(),
        RunFolder.create(folder, engine.name, "100"),
    )
    changes = engine_run.changes_probe(
        engine, stack, run, cast(ArrivalsProbe, None), no_outage, has_faults=has_faults
    )
    found = [*engine_run.engine_probes(engine, stack, run, no_outage, {}), changes]
    return [type(probe).__name__ for probe in found if probe]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, []),
        ({"TRACER_EVENTS_PER_SECOND": "12"}, ["ViewsProbe", "PurchasesProbe"]),
        ({"READS_PER_SECOND": "2"}, ["ReadsProbe"]),
    ],
)
def test_only_what_the_settings_ask_for_is_followed(
    tmp_path: Path, settings: dict[str, str], expected: list[str]
) -> None:
    assert names(tmp_path, settings=settings) == expected


@pytest.mark.parametrize(("engine", "expected"), [(NO_CDC, []), (WITH_CDC, ["PurchasesProbe"])])
def test_faults_have_cdc_followed_if_there_is_any(
    tmp_path: Path, engine: Engine, expected: list[str]
) -> None:
    assert names(tmp_path, engine, has_faults=True) == expected


def test_schemas_are_watched_for_an_engine_that_keeps_the_first(tmp_path: Path) -> None:
    engine = FakeEngine()
    engine.keeps_first_schemas = True
    assert names(tmp_path, engine) == ["SchemasProbe"]
