"""Installation recipe of an engine that runs as a Java program written for this project. Like every
recipe, it imports only the standard library and `racetrack.install`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from racetrack.install import central
from racetrack.install.recipe import Image, Installs, MavenPart, Recipe

SHARED = Path(__file__).parents[1]
PROGRAM, REDIS_SINK, UPSERT = (
    SHARED / name / "src" for name in ("java_program", "redis_sink", "upsert")
)
# Python files that the container image of such a service needs.
FILES = (
    "racetrack/engines/shared/__init__.py",
    "racetrack/engines/shared/java_program/__init__.py",
    "racetrack/engines/shared/java_program/recipe.py",
    "racetrack/engines/shared/java_program/service.py",
)


@dataclass(frozen=True)
class ProgramRecipe:
    """Recipes of two installed components ("parts"): `<engine>`, with the engine's jars and the
    compiled program, and `<engine>-tests`.

    `folder` contains the program in `program/` and its tests in `tests/java/`, each with a
    `pom.xml`, sources and `maven.sha256`.
    """

    folder: Path
    title: str
    download_mb: int
    shared: Sequence[Path]  # further folders with Java sources
    tests_need: str
    tests_download_mb: int
    beside: Sequence[str] = ()  # files of `program/` that are copied into the installed component

    @property
    def engine(self) -> str:
        return self.folder.name

    @property
    def program(self) -> Path:
        return self.folder / "program"

    @property
    def tests(self) -> Path:
        return self.folder / "tests" / "java"

    @property
    def version(self) -> str:
        """Name of the setting with the engine's version."""
        return f"{self.engine.upper()}_VERSION"

    @property
    def sources(self) -> tuple[Path, ...]:
        return (self.program / "src" / "main" / "java", PROGRAM, *self.shared)

    @property
    def maven(self) -> MavenPart:
        hashes = self.folder / "maven.sha256"
        return MavenPart(self.engine, self.program / "pom.xml", hashes, (self.version,))

    @property
    def maven_for_tests(self) -> MavenPart:
        name, hashes = f"{self.engine}-tests", self.tests / "maven.sha256"
        return MavenPart(name, self.tests / "pom.xml", hashes, (self.version,))

    @property
    def installs(self) -> Installs:
        return Installs(
            parts={self.maven.name: self._engine},
            on_request={self.maven_for_tests.name: self._tests},
            versions=(self.version,),
            maven=(self.maven, self.maven_for_tests),
            images=(Image(self.engine, parts=(self.engine,), runs=(self.engine,), files=FILES),),
        )

    def _engine(self, versions: Mapping[str, str]) -> Recipe:
        return central.program(
            self.maven,
            self.sources,
            versions,
            why=f"{self.title}, an engine under test (Maven Central)",
            download_mb=self.download_mb,
            beside=[self.program / name for name in self.beside],
        )

    def _tests(self, versions: Mapping[str, str]) -> Recipe:
        return central.jars(
            self.maven_for_tests,
            versions,
            why=f"{self.tests_need} (Maven Central)",
            download_mb=self.tests_download_mb,
        )
