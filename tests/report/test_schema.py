"""Tests of the schemas in `docs/` against what the code writes: every key of a run is described."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from racetrack.config import REPO
from racetrack.results import published
from racetrack.results import run as run_record
from racetrack.results.folder import RunFolder
from tests.records import verified
from tests.report.folders import ABSENT, RIGHT, UNREADABLE, WRONG, RunSpec, run
from tests.run_json import read_run

SCHEMA: dict[str, Any] = json.loads((REPO / "docs" / "run.schema.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)


@pytest.mark.parametrize(("module", "name"), [(run_record, "run"), (published, "result")])
def test_it_is_the_schema_of_what_the_code_writes(module: ModuleType, name: str) -> None:
    file = REPO / "docs" / f"{name}.schema.json"
    recorded = json.loads(file.read_text())
    Draft202012Validator.check_schema(recorded)
    assert module.schema() == recorded, f"python -m {module.__name__} > {file}"


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec",
    [
        RunSpec(verified=verified(users=RIGHT, items=WRONG, hvu_test=ABSENT, purchases=UNREADABLE)),
        RunSpec(lost=7, window_s=5.0),
        RunSpec(silent=True),
        RunSpec(engine="swift", runtime="compose", caveats=("Only an image.",), elsewhere=True),
        RunSpec(arguments={"faults": ("kill:debezium@15s",)}),
        RunSpec(arguments={"load": "spike 4k 8k 5s"}, leak=0.05),
    ],
)
def test_a_run_is_valid(tmp_path: Path, spec: RunSpec) -> None:
    record = read_run(run(tmp_path, spec))
    VALIDATOR.validate(record)
    assert "results" in record  # a complete record


def test_a_run_that_has_only_begun_is_valid(tmp_path: Path) -> None:
    VALIDATOR.validate(read_run(RunFolder.create(tmp_path, "steady", "5000").path))


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
