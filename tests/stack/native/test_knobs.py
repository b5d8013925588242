"""Each line of `.env` reaches what it is for in every runtime, or is said not to be heeded."""

import functools
import shutil
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from racetrack.install.recipes import PARTS, recipe
from racetrack.install.versions import parse_env_file, read_versions
from racetrack.settings import REPO, Settings, load
from racetrack.stack import heeded
from racetrack.stack.compose.project import environment
from racetrack.stack.native import broker, postgres
from racetrack.stack.native.service import Context, find_service
from tests.stack.compose.conftest import Describe, compose_plugin, described

__all__ = ["compose_plugin", "described"]  # fixtures

Knobs = dict[str, str]
Given = Callable[[tuple[str, ...], Knobs], dict[str, Any]]

KNOBS = parse_env_file((REPO / ".env").read_text())
PUBLISHED = ("docker-compose.yml",)
AIRGAP = (*PUBLISHED, "docker-compose.airgap.yml")
SERVICES = ("mysql", "broker", "registry", "debezium", "loadgen", "deephaven", "flink", "cal")
# Where one more, or another word, will not do.
OTHER = {
    "BIND_ADDRESS": "127.0.0.9",
    "KAFKA_ADVERTISED_ADDRESS": "a.example",
    "KAFKA_RETENTION_BYTES": "100000000",
    "REDPANDA_MEMORY": "9G",
    "POSTGRES_SHARED_BUFFERS": "123MB",
    "FLINK_STATE_BACKEND": "rocksdb",
    "FLINK_UPSERT_MATERIALIZE": "NONE",
    "LOADGEN_ACKS": "all",
}
# What it is changed from, where what is delivered would not show it.
FROM = {
    "REDPANDA_SMP": {"REDPANDA_MEMORY": "9G"},
    "FLINK_CHECKPOINT_MS": {"FLINK_CHECKPOINT_MS": "5000"},
}


def before(name: str) -> Knobs:
    return FROM.get(name, {})


def after(name: str) -> Knobs:
    """The knobs with another value of this one."""
    value = OTHER.get(name, KNOBS[name])
    if name in OTHER:
        pass
    elif name.endswith(("_HEAP", "_TMPFS")):
        value = "7g"
    elif value.lstrip("-").isdigit():
        value = str(int(value) + 1)
    else:
        value = "9.9.9"
    return {**before(name), name: value}


def heeding(runtime: str) -> list[str]:
    """The knobs that a runtime is said to heed."""
    return [n for n in KNOBS if n not in heeded.NOT_HEEDED[runtime].keys() | heeded.OF_THE_HARNESS]


def of_settings(knobs: Knobs) -> Knobs:
    """Those that the harness reads; the others only compose or the installer knows."""
    return {name: v for name, v in knobs.items() if name.lower() in Settings.model_fields}


@pytest.fixture(scope="module")
def given(described: Describe) -> Given:
    """What compose files say with these knobs, each asked for once."""

    @functools.cache
    def describe(files: tuple[str, ...], knobs: tuple[tuple[str, str], ...]) -> dict[str, Any]:
        told = dict(knobs)
        return described(*files, **{**told, **environment(load(of_settings(told)))})

    return lambda files, knobs: describe(files, tuple(knobs.items()))


@pytest.mark.parametrize("name", heeding("compose"))
def test_a_knob_reaches_the_published_images(name: str, given: Given) -> None:
    assert given(PUBLISHED, before(name)) != given(PUBLISHED, after(name))


@pytest.mark.parametrize("name", heeding("airgap"))
def test_a_knob_reaches_the_images_that_are_made_here(name: str, given: Given) -> None:
    assert given(AIRGAP, before(name)) != given(AIRGAP, after(name))


@pytest.mark.parametrize("name", sorted(heeded.NOT_HEEDED["compose"]))
def test_what_is_said_not_to_reach_the_published_images_does_not(name: str, given: Given) -> None:
    assert given(PUBLISHED, before(name)) == given(PUBLISHED, after(name))


@pytest.fixture
def native(context: Context, monkeypatch: pytest.MonkeyPatch) -> "Native":
    monkeypatch.setattr(broker, "_new_id", lambda: "an-id")
    return Native(context)


class Native:
    """All that native services are started and configured with, word by word."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def words(self, knobs: Knobs) -> set[str]:
        free = {n: v for n, v in self._context.settings if n.endswith("_port")}
        free = {n: v for n, v in free.items() if n.upper() not in knobs}
        settings = load(of_settings(knobs)).model_copy(update=free)
        context = replace(self._context, settings=settings)
        said = [f"{n}={v}" for n, v in postgres.configuration(context).items()]
        for name in (*SERVICES, "pgfeed"):
            said += self._launched(name, context)
        versions = read_versions(environ=knobs)
        said += [recipe(part, versions).label for part in PARTS]
        return {word for line in said for word in line.split()}

    def stable(self, knobs: Knobs) -> set[str]:
        """Those that are the same the next time, as a free port is not."""
        return self.words(knobs) & self.words(knobs)

    def _launched(self, name: str, context: Context) -> list[str]:
        work = context.work / name
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        launch = find_service(name).launch(replace(context, work=work))
        files = [path for path in sorted(work.rglob("*")) if path.is_file()]
        told = [*launch.argv, *(f"{n}={v}" for n, v in launch.env.items())]
        return [*told, *(path.read_text(errors="replace") for path in files)]


def test_a_knob_reaches_native_services(native: Native) -> None:
    delivered = native.stable({})
    unheeded = []
    for name in heeding("native"):
        known = native.stable(before(name)) if before(name) else delivered
        if known <= native.words(after(name)):
            unheeded.append(name)
    assert unheeded == []


def test_only_knobs_are_said_not_to_be_heeded() -> None:
    said = {name for names in heeded.NOT_HEEDED.values() for name in names}
    assert said | heeded.OF_THE_HARNESS <= KNOBS.keys()


def test_every_setting_stands_in_env() -> None:
    asked = {name for name, field in Settings.model_fields.items() if field.is_required()}
    assert {name.upper() for name in asked} <= KNOBS.keys()


def test_of_each_knob_that_is_not_heeded_it_is_said_whether_results_depend_on_it() -> None:
    said = {name for names in heeded.NOT_HEEDED.values() for name in names}
    tuning = {name for name in said if not name.endswith(("_PORT", "_VERSION"))}
    assert tuning == heeded.CHANGES_RESULTS_OF.keys()
