"""Recipe of the installed component `pathway`: a Python environment with Pathway, from PyPI."""

from pathlib import Path

from racetrack.install import pypi
from racetrack.install.recipe import Installs, PypiLock, Recipe

FOLDER = Path(__file__).parent
LOCK = FOLDER / "requirements.lock"


def pathway() -> Recipe:
    """Return the recipe of a CPython environment with Pathway, and what its program imports."""
    return pypi.locked("pathway", "Pathway, an engine under test (PyPI)", 400, LOCK)


INSTALLS = Installs(
    parts={"pathway": lambda _: pathway()},
    # Not in the harness's versions: Pathway needs an older pyarrow.
    pypi=(PypiLock(LOCK, ["racetrack/engines/pathway/requirements.in"]),),
)
