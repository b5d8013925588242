"""Tests of `docs/run.schema.json` against records that the code writes: every key is described."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from racetrack.config import REPO
from racetrack.results.folder import RunFolder
from racetrack.results.run import SCHEMA_VERSION, schema
from tests.records import verified
from tests.report.folders import ABSENT, RIGHT, UNREADABLE, WRONG, RunSpec, edit, run
from tests.run_json import read_run

SCHEMA: dict[str, Any] = json.loads((REPO / "docs" / "run.schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)


def test_it_is_the_schema_of_what_the_code_writes() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert schema() == SCHEMA, "python -m racetrack.results.run > docs/run.schema.json"
    assert SCHEMA["properties"]["schema_version"]["const"] == SCHEMA_VERSION


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec",
    [
        RunSpec(),
        RunSpec(leak=0.05),
        RunSpec(window_s=5.0),
        RunSpec(lost=7),
        RunSpec(silent=True),
        RunSpec(engine="swift", runtime="compose", caveats=("Only an image.",)),
        RunSpec(engine="swift", elsewhere=True),
        RunSpec(verified=verified(users=RIGHT, items=WRONG, hvu_test=ABSENT, purchases=UNREADABLE)),
        RunSpec(arguments={"faults": ("kill:debezium@15s",)}),
        RunSpec(arguments={"load": "spike 4k 8k 5s"}),
    ],
    ids=[
        "kept up",
        "fell behind",
        "too short",
        "lost some",
        "no update in the window",
        "another engine and runtime",
        "an engine elsewhere",
        "verified",
        "under trouble",
        "under a changing load",
    ],
)
def test_a_run_is_valid(tmp_path: Path, spec: RunSpec) -> None:
    record = read_run(run(tmp_path, spec))
    VALIDATOR.validate(record)
    assert "results" in record  # a complete record


def test_a_run_that_has_only_begun_is_valid(tmp_path: Path) -> None:
    VALIDATOR.validate(read_run(RunFolder.create(tmp_path, "steady", "5000").path))


@pytest.mark.parametrize(
    "changes",
    [
        {"schema_version": 2},
        {"surprise": 1},
        {"arguments": {"pageviews_per_s": "many"}},
        {"results": {}},
        {"steps": [{"name": "x", "started_at": "yesterday", "ended_at": None}]},
    ],
)
def test_what_is_not_a_run_is_not_valid(tmp_path: Path, changes: dict[str, Any]) -> None:
    folder = run(tmp_path, RunSpec(window_s=10.0))
    edit(folder, **changes)
    with pytest.raises(ValidationError):
        VALIDATOR.validate(read_run(folder))


def test_every_key_is_described() -> None:
    def missing(schema: Any, where: str) -> list[str]:
        if not isinstance(schema, dict):
            return []
        found = []
        for key, of in schema.get("properties", {}).items():
            described = "description" in of or "$ref" in of or "anyOf" in of
            found += [] if described else [f"{where}.{key}"]
            found += missing(of, f"{where}.{key}")
        for key in ("items", "additionalProperties"):
            found += missing(schema.get(key), f"{where}.{key}")
        return found + [m for key, of in schema.get("$defs", {}).items() for m in missing(of, key)]

    assert missing(SCHEMA, "run") == []
