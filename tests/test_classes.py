"""Tests of the classes of engines: those of the docs, and what follows from settings."""

from typing import get_args

import pytest

from racetrack import config, engines
from racetrack.results.classes import TITLES, Classes, classes_of_run, differing, ranked

EARLY = {"work": "as events arrive"}
KEPT = {"FLINK_CHECKPOINT_MS": "10000"}


def test_classes_are_those_of_the_docs() -> None:
    text = (config.REPO / "docs" / "engines.md").read_text()
    engines_with_script = [of for of in engines.all_engines() if of.script_ending]
    assert engines_with_script
    for engine in engines_with_script:
        classes = engine.classes(config.defaults()).model_dump().values()
        row = " | ".join(value or "unknown" for value in classes)
        assert f"| `{engine.name}` | {row} |" in text


def test_what_a_killed_engine_does_is_in_the_docs() -> None:
    text = (config.REPO / "docs" / "faults.md").read_text()
    for line in (line for line in text.splitlines() if line.startswith("| `")):
        name, said = (cell.strip(" `") for cell in line.split("|")[1:3])
        if name in engines.engine_names() and not said.startswith("the same"):
            does = engines.find_engine(name).classes(config.defaults()).after_a_kill
            first, _, second = does.partition(", ")
            assert said.startswith(first) and second in said


@pytest.mark.parametrize(
    ("engine", "settings", "key", "value"),
    [
        ("flink", {}, "after_a_kill", "reads all input again"),
        ("flink", KEPT, "after_a_kill", "resumes"),
        ("flink", KEPT | {"RUNTIME": "kubernetes"}, "after_a_kill", "reads all input again"),
        ("apex", {"APEX_GUARANTEE": "at_most_once"}, "after_a_kill", "resumes, loses some events"),
        ("dh", {"DEEPHAVEN_PUBLISH": "true"}, "results", "published to Kafka"),
        ("pg", {"POSTGRES_TRIGGERS": "true"}, "work", "partly when read"),
    ],
)
def test_a_class_follows_its_settings(
    engine: str, settings: dict[str, str], key: str, value: str
) -> None:
    classes = engines.find_engine(engine).classes(config.load(settings))
    assert classes.model_dump()[key] == value


def test_only_who_computes_as_events_arrive_is_ranked_unless_nobody_does() -> None:
    partly, late = {"work": "partly when read"}, {"work": "when read"}
    assert ranked({"a": late, "b": EARLY, "c": {}, "d": partly}) == ("b", "c")
    assert ranked({"a": late, "d": partly}) == ("a", "d")


def test_classes_differ_as_far_as_they_are_known() -> None:
    some = classes_of_run({**EARLY, "results": "served"}, 12, 17)
    other = classes_of_run({**EARLY, "results": "published to Kafka", "views": ""}, 17, 17)
    assert (some["missing"], other["missing"]) == ("12 of 17 views", "all views")
    assert differing([some, other]) == ("results", "missing")
    assert differing([some, {}]) == ()


def test_every_class_has_a_title_and_may_be_unknown() -> None:
    assert TITLES.keys() == {*Classes.model_fields, "missing"}
    for field in Classes.model_fields.values():
        assert "" in get_args(field.annotation)
