"""Tests that the published images have all that docker-compose.yml expects of them."""

import fnmatch
import re
from pathlib import Path
from typing import Any

import pytest

from racetrack import plugins
from racetrack.config import REPO
from racetrack.install.versions import in_env_files
from tests import image_facts
from tests.compose_files import (
    OF_ENGINES,
    OF_THE_STACK,
    Only,
    defaults_in,
    dockerfile_of,
    dockerfiles,
    image_of,
)
from tests.image_facts import IMAGES, Image

# Files of this repository that containers of published images get.
GIVEN = {
    "mysql": ("debezium/mysql-user.sh",),
    # Settings of workloads.
    "loadgen": tuple(str(path) for path in REPO.glob("racetrack/workloads/*/load")),
}
SERVICES = (*OF_THE_STACK, *OF_ENGINES)
SCRIPTS = [
    (image_facts.DEBEZIUM, "debezium/healthy.sh"),
    (image_facts.DEBEZIUM, "debezium/register.sh"),
    (image_facts.DEBEZIUM, "debezium/start.sh"),
    (image_facts.MYSQL, "debezium/mysql-user.sh"),
    (image_facts.PYPY, "loadgen/healthy.sh"),
]
VARIABLES = {
    "SCHEMA_REGISTRY_URL": "http://x",
    "COMMAND_ENDPOINT": "127.0.0.1:1",
    "WORKLOAD": "shop",
    "TABLES": "shop.users,shop.items,shop.purchases",
    "MYSQL_ROOT_PASSWORD": "a",
    "MYSQL_DEBEZIUM_PASSWORD": "b",
}
# Variables of libpq, which several programs use.
LIBPQ = ("PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGPASSWORD")
# Matches a line that names an image and its version, or the argument with its version.
IMAGE = re.compile(r"^(?:FROM|    image:) ([^\s:]+):(?:\$\{(\w+)\}|(\S+))", re.MULTILINE)


@pytest.fixture
def only(tmp_path: Path) -> Only:
    return Only(tmp_path)


def test_every_image_is_in_the_table_which_is_of_the_pinned_versions() -> None:
    """After a version change, read the image's sources again and update the table."""
    known = set()
    texts = [file.read_text() for file in files_with_images()]
    for text in texts:
        for name, argument, version in IMAGE.findall(text):
            assert name in IMAGES or name.startswith("racetrack/"), name
            if name in IMAGES:
                known.add(name)
                for tag in [version] if version else versions_of(argument, text, texts):
                    assert tag.startswith(IMAGES[name].holds_for), (name, tag)
    assert known == IMAGES.keys()


def versions_of(argument: str, text: str, texts: list[str]) -> list[str]:
    """Return the values of a version: the one in the same Dockerfile, or those of the settings that
    compose files give it, several if engines share a Dockerfile."""
    if found := defaults_in(text).get(argument):
        return [found]
    given = re.compile(rf"^ +{argument}: \$\{{(\w+)\}}$", re.MULTILINE)
    settings = {setting for each in texts for setting in given.findall(each)} or {argument}
    return [in_env_files()[setting] for setting in settings]


def files_with_images() -> list[Path]:
    composed = [REPO / "docker-compose.yml", REPO / "loadgen/compose.yml"]
    return [*composed, *plugins.files("compose.yml"), *dockerfiles()]


@pytest.mark.parametrize("name", SERVICES)
def test_health_is_asked_as_the_image_does_or_by_programs_that_it_has(
    name: str, services: dict[str, Any], only: Only
) -> None:
    image = image_of(services[name])
    how, *command = services[name]["healthcheck"]["test"]
    assert image.health is None or " ".join(command) == image.health.value
    if how == "CMD-SHELL":
        only.run(image, "sh", "-c", command[0].replace("$$", "$"))
    else:
        assert command[0] in image.programs.value


@pytest.mark.parametrize(("image", "script"), SCRIPTS, ids=lambda of: str(of).rpartition("/")[2])
def test_scripts_in_an_image_call_programs_that_it_has(
    image: Image, script: str, only: Only
) -> None:
    only.run(image, "bash", str(REPO / script), "bash", "-c", "true", **VARIABLES)


@pytest.mark.parametrize("name", SERVICES)
def test_variables_are_used_by_the_image_or_by_what_we_put_into_it(
    name: str, services: dict[str, Any]
) -> None:
    variables = image_of(services[name]).variables
    given = [REPO / path for path in GIVEN.get(name, ())]
    ours = "\n".join(map(text_of, [*given, *built_from(services[name])]))
    for variable in services[name].get("environment", {}):
        known = variables and any(fnmatch.fnmatchcase(variable, each) for each in variables.value)
        known = known or variable.lower() == "no_proxy"  # used by every client
        known = known or f"${variable}" in " ".join(services[name].get("command") or ())
        assert known or re.search(rf"\b{variable}\b", ours) or variable in LIBPQ, variable


def built_from(service: dict[str, Any]) -> list[Path]:
    """Return the folders and files that a locally built image contains."""
    if "build" not in service:
        return []
    build, beside = service["build"], dockerfile_of(service).parent
    engine = build.get("args", {}).get("ENGINE")
    shared = [REPO / "racetrack/kafka_endpoint.py", REPO / "racetrack/engines/shared/upsert/src"]
    program = [Path(build["context"]) / engine / "program"] if engine else []
    return [beside, *program, *shared]


def text_of(path: Path) -> str:
    """Return the text of a file, or of all files of a folder except caches."""
    if path.is_file():
        return path.read_text()
    inside = [file for file in sorted(path.rglob("*")) if file.is_file()]
    caches = {
        file for file in inside if re.search(r"/(__|\.)\w+/", str(file.relative_to(path.parent)))
    }
    return "\n".join(file.read_text() for file in inside if file not in caches)


def test_data_is_in_memory_where_the_image_keeps_it(services: dict[str, Any]) -> None:
    in_memory = {name: image_of(services[name]) for name in SERVICES if "tmpfs" in services[name]}
    kept = {name: image.data.value for name, image in in_memory.items() if image.data}
    assert kept.keys() >= {"mysql", "redpanda"}
    for name, folder in kept.items():
        (mount,) = services[name]["tmpfs"]
        assert mount.partition(":")[0] == folder
