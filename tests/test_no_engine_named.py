"""Nothing in the harness, the generator or the tests of both names an engine: what is about one
stands in its folder."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

import engines
from racetrack import plugins
from racetrack.settings import REPO

NEUTRAL = (
    *("racetrack", "loadgen", "tests", "conftest.py"),
    *("images", "debezium", "bench"),
)
# Name of an engine's → where it may stand, and why.
EXCEPTIONS = {
    "calibration engine": ("", "the harness's own word for the engine it measures itself with"),
}


def names(engine: str) -> set[str]:
    """What names this engine: itself, its services, its scripts, and its settings."""
    found = engines.find_engine(engine)
    knobs = plugins.of_all("knobs").get(engine)
    settings = [*knobs.Knobs.__annotations__] if knobs else []
    settings += knobs.HEED.image_versions if knobs and hasattr(knobs, "HEED") else ()
    native = [path.stem for path in (plugins.ENGINES / engine / "services").glob("[!_]*.py")]
    own = (engine, found.title, *found.services, *found.scripts.values(), *native, *settings)
    return {name.lower() for name in own}


@cache
def texts() -> dict[str, str]:
    """Every file of this repository that has to be neutral, by its path."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", *NEUTRAL],
        cwd=REPO,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [Path(name) for name in listed.stdout.split("\0") if name and (REPO / name).is_file()]
    found = {str(path): f"{path}\n{(REPO / path).read_text(errors='replace')}" for path in paths}
    return {path: in_words(text) for path, text in found.items()}


def in_words(text: str) -> str:
    """FleetEngine as Fleet_Engine: the words of a class's name are words, too."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text)


def places(name: str) -> list[str]:
    """Files that hold the name as words of their own, whatever parts them: FLEET_HEAP has fleet."""
    words = r"[\W_]+".join(re.escape(word) for word in re.split(r"[\W_]+", name))
    pattern = re.compile(rf"(?<![a-z]){words}(?![a-z])", re.IGNORECASE)
    return [path for path, text in texts().items() if pattern.search(text)]


@pytest.mark.parametrize("engine", engines.engine_names())
def test_no_file_of_the_harness_names_an_engine(engine: str) -> None:
    named = {
        f"{path}: {name}"
        for name in names(engine)
        for path in places(name)
        if not (name in EXCEPTIONS and path.startswith(EXCEPTIONS[name][0]))
    }
    assert named == set(), "\n".join(sorted(named))


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_an_exception_is_still_needed(name: str) -> None:
    where, why = EXCEPTIONS[name]
    assert why
    assert any(name in names(engine) for engine in engines.engine_names())
    assert any(path.startswith(where) for path in places(name))
