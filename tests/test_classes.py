"""Tests of the classes of engines: those of the docs, and what follows from settings."""

import pytest

from racetrack import config, engines

KEPT = {"FLINK_CHECKPOINT_MS": "10000"}
AT_LEAST_ONCE = {"FLINK_GUARANTEE": "at_least_once"}


def test_classes_are_those_of_the_docs() -> None:
    text = (config.REPO / "docs" / "engines.md").read_text()
    engines_with_script = [of for of in engines.all_engines() if of.script_ending]
    assert engines_with_script
    for engine in engines_with_script:
        classes = engine.classes(config.defaults()).model_dump().values()
        row = " | ".join(value or "unknown" for value in classes)
        assert f"| `{engine.name}` | {row} |" in text


@pytest.mark.parametrize(
    ("engine", "settings", "key", "value"),
    [
        ("flink", KEPT, "after_a_kill", "resumes"),
        ("flink", KEPT | AT_LEAST_ONCE, "after_a_kill", "resumes, leaves some rows wrong"),
        ("flink", KEPT | {"RUNTIME": "kubernetes"}, "after_a_kill", "reads all input again"),
        ("pg", {"POSTGRES_TRIGGERS": "true"}, "work", "partly when read"),
        ("pg", {"POSTGRES_UNLOGGED": "true"}, "after_a_kill", "reads all input again"),
        ("pg", {"RUNTIME": "compose"}, "after_a_kill", "reads all input again"),
    ],
)
def test_a_class_follows_its_settings(
    engine: str, settings: dict[str, str], key: str, value: str
) -> None:
    classes = engines.find_engine(engine).classes(config.load(settings))
    assert classes.model_dump()[key] == value
