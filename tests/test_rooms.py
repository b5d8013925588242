"""Tests of which package may import which, by the imports in the code. The order of the packages is
in pyproject.toml; rules for every engine are here."""

import sys

import grimp
import pytest
from importlinter.cli import lint_imports

from racetrack import engines
from racetrack.config import REPO

NAMES = engines.engine_names()
# Modules that every engine may import, and those that the harness may import from engines.
SHARED = ("racetrack.engines.contract", "racetrack.engines.shared")
TO_THE_HARNESS = {"racetrack.engines", "racetrack.engines.contract"}
SHARED_RECIPE = "racetrack.engines.shared.java_program.recipe"


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    """Return all imports, including those in functions and those of external packages."""
    return grimp.build_graph("racetrack", include_external_packages=True)


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def imported_by(graph: grimp.ImportGraph, package: str) -> dict[str, set[str]]:
    """Return the imports of each module of a package."""
    return {
        module: graph.find_modules_directly_imported_by(module)
        for module in graph.modules
        if within(module, package)
    }


def test_no_import_runs_upward() -> None:
    assert lint_imports(config_filename=str(REPO / "pyproject.toml"), no_cache=True) == 0


@pytest.mark.parametrize("package", [*SHARED, *(f"racetrack.engines.{name}" for name in NAMES)])
def test_an_engine_imports_no_other_and_what_is_shared_none(
    package: str, imports: grimp.ImportGraph
) -> None:
    own = SHARED if package in SHARED else (package, *SHARED)
    for module, found in imported_by(imports, package).items():
        others = {each for each in found if each.startswith("racetrack.engines.")}
        assert not {each for each in others if not any(within(each, of) for of in own)}, module


def test_the_harness_imports_no_engine(imports: grimp.ImportGraph) -> None:
    for module, found in imported_by(imports, "racetrack").items():
        if not within(module, "racetrack.engines"):
            used = {each for each in found if within(each, "racetrack.engines")}
            assert used <= TO_THE_HARNESS, module


RECIPES = [SHARED_RECIPE, *(f"racetrack.engines.{name}.recipe" for name in NAMES)]


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_needs_the_standard_library_only(recipe: str, imports: grimp.ImportGraph) -> None:
    """The recipe says how to install the engine, and runs before anything is installed."""
    for found in imported_by(imports, recipe).values():
        elsewhere = {each for each in found if each.split(".")[0] not in sys.stdlib_module_names}
        elsewhere -= {SHARED_RECIPE}
        assert all(within(each, "racetrack.install") for each in elsewhere)
