"""Tests that settings in `.env` reach their service in every runtime, or are reported as unused."""

import functools
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from racetrack import plugins
from racetrack.config import every_setting, load, of_engine, own_names
from racetrack.install.ensure import parts, recipe
from racetrack.install.versions import in_env_files, read_versions
from racetrack.stack import applicability, resources
from racetrack.stack.compose.project import environment
from racetrack.stack.containers import called
from racetrack.stack.service import Context, Launch, find_service
from racetrack.stack.services import broker
from tests.compose_files import AIRGAP, PUBLISHED, described
from tests.image_facts import IMAGES
from tests.service_facts import FACTS, LAUNCHED, another_value

Overrides = dict[str, str]
Words = dict[str, set[str]]  # service → the words of its configuration
Configured = Callable[[Overrides], Words]

IN_FILES = in_env_files()
RUNTIMES = ("native", "compose", "airgap")
# Settings of the stack that no service reads. A run that can't have several replicas refuses to
# start.
HARNESS_ONLY = {
    *("RUNTIME", "AIRGAP", "KUBERNETES_SMALL", "KUBERNETES_JOB", "KUBERNETES_REGISTRY"),
    *("KUBERNETES_CUT_COMMAND", "LOGS_FOLDER", "STACK_NAME", "WORKLOAD", "READS_PER_SECOND"),
    *("ENGINE_REPLICAS", "BROKER_REPLICAS", "LOADGEN_REPLICAS"),
    *("NOISE_GATE", "FOREIGN_CPU_MAX_PCT", "STEAL_MAX_PCT", "SLOWDOWN_MAX_PCT"),
}
# Setting → settings that must be changed first, so that its own effect shows.
FROM = {name: overrides for facts in FACTS for name, overrides in facts.changed_from.items()}
# A workload's setting has an effect only if that workload is chosen.
FROM |= {
    name.upper(): {"WORKLOAD": workload}
    for workload, module in plugins.of_all_workloads("settings").items()
    for name in own_names(module)
    if workload != plugins.default_workload()
}
IMAGE_OF = {name: image for facts in FACTS for name, image in facts.image_of.items()}
NATIVE_HEAP_OF = {name: service for facts in FACTS for name, service in facts.jvm_of.items()}
INNER_JVM = {service: args for facts in FACTS for service, args in facts.inner_jvm.items()}


def before(name: str) -> Overrides:
    return dict(FROM.get(name, {}))


def after(name: str) -> Overrides:
    """Return the overrides of `before`, and another value of this setting."""
    return {**before(name), name: another_value(name)}


def heeding(runtime: str) -> list[str]:
    """Return the settings that are documented to have an effect in a runtime."""
    unheeded = {*ignored(runtime)} | HARNESS_ONLY | applicability.harness_settings()
    return [name for name in IN_FILES if name not in unheeded]


def ignored(runtime: str) -> list[str]:
    """Return the settings that are documented to have no effect in a runtime."""
    where, airgap = ("compose", True) if runtime == "airgap" else (runtime, False)
    return [n for n in IN_FILES if applicability.why_ignored(n, where, airgap=airgap)]


def of_settings(overrides: Overrides) -> Overrides:
    """Return only the settings that the harness reads; the others are read by compose or the
    installer."""
    return {name: v for name, v in overrides.items() if name.lower() in every_setting()}


@functools.cache
def described_with(runtime: str, overrides: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    given = dict(overrides)
    given |= environment(load(of_settings(given)))
    found: dict[str, Any] = described(*(AIRGAP if runtime == "airgap" else PUBLISHED), **given)
    return dict(found["services"])


def containers(runtime: str, overrides: Overrides) -> dict[str, Any]:
    """Return what containers get from the compose files with these overrides."""
    return described_with(runtime, tuple(overrides.items()))


def in_containers(runtime: str, overrides: Overrides) -> Words:
    # Labels are left out, as only the memory check reads them.
    found = containers(runtime, overrides).items()
    return {name: {json.dumps({**of, "labels": {}})} for name, of in found}


class Native:
    """The commands and configurations of native services."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def words(self, overrides: Overrides) -> Words:
        context, versions = self._with(overrides), read_versions(environ=overrides)
        texts = {name: self._launched(name, context) for name in LAUNCHED}
        texts |= {f"part {part}": [recipe(part, versions).label] for part in parts()}
        for facts in FACTS:
            texts |= {name: [text] for name, text in facts.configured(context).items()}
        return {name: set(" ".join(of).split()) for name, of in texts.items()}

    def jvm(self, name: str, overrides: Overrides) -> list[str]:
        """Return the words of a service's JVM command line, even if a shell starts it."""
        launch = self._launch(name, self._with(overrides))
        inner = INNER_JVM[name](launch.env) if name in INNER_JVM else []
        return " ".join([*launch.argv, *inner]).split()

    def _with(self, overrides: Overrides) -> Context:
        free = {n: v for n, v in self._context.settings if n.endswith("_port")}
        free = {n: v for n, v in free.items() if n.upper() not in overrides}
        settings = load(of_settings(overrides)).model_copy(update=free)
        return replace(self._context, settings=settings)

    def _launch(self, name: str, context: Context) -> Launch:
        work = context.work / name
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        return find_service(name).launch(replace(context, work=work))

    def _launched(self, name: str, context: Context) -> list[str]:
        launch, files = self._launch(name, context), (context.work / name).rglob("*")
        cores = "_".join(resources.pinned_command(context.settings, name, launch.argv)[:3])
        texts = [path.read_text(errors="replace") for path in files if path.is_file()]
        return [cores, *launch.argv, *(f"{n}={v}" for n, v in launch.env.items()), *texts]


@pytest.fixture
def native(context: Context, monkeypatch: pytest.MonkeyPatch) -> Native:
    monkeypatch.setattr(broker, "_new_id", lambda: "an-id")
    return Native(context)


def stable(configured: Configured, overrides: Overrides) -> Words:
    """Return the words that are the same each time; free ports, for example, are not."""
    again = configured(overrides)
    return {service: words & again[service] for service, words in configured(overrides).items()}


def noticing(configured: Configured, settings: list[str]) -> dict[str, set[str]]:
    """Return setting → the services whose configuration it changes."""
    default, found = stable(configured, {}), {}
    for name in settings:
        known = stable(configured, before(name)) if before(name) else default
        changed = configured(after(name))
        found[name] = {each for each in known if known[each] - changed.get(each, set())}
    return found


@pytest.mark.slow
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_setting_reaches_its_owner_or_else_some_service(runtime: str, native: Native) -> None:
    configured = native.words if runtime == "native" else partial(in_containers, runtime)
    owners, every = applicability.owners(), configured({}).keys()
    unheeded = []
    for name, services in noticing(configured, heeding(runtime)).items():
        owner = owners.get(name, "")
        if not services & ({owner, called(owner)} & every or every):
            unheeded.append(name)
    assert unheeded == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in heeding("compose") if n.endswith("_HEAP")])
def test_a_heap_is_that_of_a_published_image_s_jvm(name: str) -> None:
    service, image_name = IMAGE_OF[name]
    image = IMAGES[image_name]
    assert image.jvm
    variables = containers("compose", after(name))[service]["environment"]
    jvm = " ".join(variables.get(each.variable, each.otherwise) for each in image.jvm.value)
    # If a JVM gets this flag repeatedly, the last one counts.
    assert re.findall(r"-Xmx\S+", jvm)[-1] == "-Xmx7g"


@pytest.mark.parametrize("name", [n for n in heeding("native") if n.endswith("_HEAP")])
def test_a_heap_is_that_of_a_native_service_s_jvm(name: str, native: Native) -> None:
    jvm = native.jvm(NATIVE_HEAP_OF[name], after(name))
    assert [word for word in jvm if word.startswith("-Xmx")] == ["-Xmx7g"]


def test_of_each_setting_that_is_not_heeded_it_is_said_whose_results_depend_on_it() -> None:
    said = {name for where in RUNTIMES for name in ignored(where)}
    of_engines = {name.upper() for engine in plugins.engine_names() for name in of_engine(engine)}
    tuning = {name for name in said - of_engines if not name.endswith(applicability.EXPORTED)}
    assert tuning and tuning <= applicability.owners().keys()
