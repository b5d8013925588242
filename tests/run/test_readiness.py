"""Tests of the checks before a stack starts: settings without effect are refused."""

from dataclasses import replace

import pytest

from racetrack import plugins
from racetrack.config import every_setting, load, of_other_engines
from racetrack.engines import calibration_engine, find_engine
from racetrack.errors import UsageError
from racetrack.install.versions import in_env_files
from racetrack.results.defects import InjectedDefect
from racetrack.run import checks
from racetrack.run.checks import OPTIONAL_RATES, services_of
from racetrack.stack import applicability
from racetrack.workloads.contract import find_workload
from tests.run.fakes import MakeReady, ready
from tests.service_facts import FACTS, OTHER_VALUES, another_value
from tests.some_engines import CALIBRATION, EXAMPLE

__all__ = ["ready"]  # a fixture
PORTS = {name.upper(): "1" for name in every_setting() if name.endswith("_port")}
FLAWED = calibration_engine().settings_of(InjectedDefect(delay_ms=7))


@pytest.mark.parametrize(
    ("engine", "runtime", "variables"),
    [
        (EXAMPLE, "native", {"REDPANDA_SMP": "2", "REDPANDA_MEMORY": "2G"}),
        (CALIBRATION, "native", {"REDPANDA_TMPFS": "1g"}),
        (EXAMPLE, "compose", {"REDPANDA_MEMORY": "7G", "AIRGAP": "true"}),
    ],
)
def test_a_setting_of_this_run_that_does_nothing_is_refused(
    engine: str, runtime: str, variables: dict[str, str], ready: MakeReady
) -> None:
    refused = rf"^{next(iter(variables))} has no effect .*\. Unset it .*\(RUNTIME"
    with pytest.raises(UsageError, match=refused) as refusal:
        ready(engine, runtime, **variables)
    assert refusal.value.exit_code == 2


@pytest.mark.parametrize("rate", OPTIONAL_RATES)
def test_a_rate_that_the_workload_does_not_have_is_refused(rate: str) -> None:
    workload = replace(find_workload(plugins.default_workload()), rates=())
    engine = find_engine(CALIBRATION)
    checks.require_raced_on(engine, load(), lambda _: workload)
    with pytest.raises(UsageError, match=f"{rate.upper()} has no effect: the workload"):
        checks.require_raced_on(engine, load({rate.upper(): "3"}), lambda _: workload)


def test_reads_are_refused_for_an_engine_without_the_views_that_are_read() -> None:
    workload = find_workload(plugins.default_workload())
    engine = find_engine(EXAMPLE)
    checks.require_raced_on(engine, load({"READS_PER_SECOND": "2"}), lambda _: workload)
    none = replace(workload, queries=())
    with pytest.raises(UsageError, match=r"READS_PER_SECOND: .* none of the views"):
        checks.require_raced_on(engine, load({"READS_PER_SECOND": "2"}), lambda _: none)


@pytest.mark.parametrize(
    ("engine", "runtime", "variables"),
    [
        (EXAMPLE, "native", {}),
        (CALIBRATION, "compose", {}),
        (CALIBRATION, "native", {"EVENTS_PARTITIONS": "1"}),
    ],
)
def test_replicas_that_the_engine_can_not_have_are_refused(
    engine: str, runtime: str, variables: dict[str, str], ready: MakeReady
) -> None:
    with pytest.raises(UsageError, match="ENGINE_REPLICAS"):
        ready(engine, runtime, ENGINE_REPLICAS="2", **variables)
    assert ready(engine, runtime, ENGINE_REPLICAS="1", **variables)
    assert ready(CALIBRATION, "native", ENGINE_REPLICAS="2", EVENTS_PARTITIONS="2")


@pytest.mark.parametrize(("runtime", "partitions"), [("native", "6"), ("kubernetes", "2")])
@pytest.mark.parametrize("name", ["BROKER_REPLICAS", "LOADGEN_REPLICAS"])
def test_brokers_and_generators_that_can_not_be_are_refused(
    name: str, runtime: str, partitions: str
) -> None:
    given = {name: "3", "EVENTS_PARTITIONS": partitions}
    with pytest.raises(UsageError, match=f"{name}=3"):
        checks.require_replicas(load(given), runtime)
    checks.require_replicas(load({**given, name: "1"}), runtime)
    checks.require_replicas(load({name: "3"}), "kubernetes")
    given = {"KAFKA_BOOTSTRAP_SERVERS": "192.0.2.1:9092", "KAFKA_TOPIC_PREFIX": "ours."}
    with pytest.raises(UsageError, match="BROKER_REPLICAS"):  # they run elsewhere
        checks.require_replicas(load({**given, "BROKER_REPLICAS": "2"}), "kubernetes")
    checks.require_replicas(load({**given, "LOADGEN_REPLICAS": "2"}), "kubernetes")


def of_others(engine: str) -> dict[str, str]:
    """Return changed values of all settings for services that this engine does not use."""
    services = services_of(find_engine(engine), load())
    owners = applicability.owners().items()
    of_services = {name for name, service in owners if service not in services}
    of_engines = {*map(str.upper, of_other_engines(engine))} & in_env_files().keys()
    without_value = applicability.harness_settings() - OTHER_VALUES.keys()
    return {name: another_value(name) for name in of_services | of_engines - without_value}


@pytest.mark.parametrize(
    ("engine", "runtime", "variables"),
    [
        (EXAMPLE, "native", {"REDPANDA_SMP": "1"}),  # the value in .env
        (EXAMPLE, "native", {name: "7g" for facts in FACTS for name in facts.jvm_of}),
        (EXAMPLE, "native", {**PORTS, "REDPANDA_VERSION": "9", "STACK_NAME": "other"}),
        (EXAMPLE, "compose", {**of_others(EXAMPLE), "KAFKA_CONTROLLER_PORT": "1"}),
        (CALIBRATION, "native", FLAWED),
        (EXAMPLE, "compose", {"AIRGAP": "true", "KAFKA_HEAP": "7g", "REDPANDA_TMPFS": "7g"}),
    ],
)
def test_one_that_does_something_or_is_for_others_is_not(
    engine: str, runtime: str, variables: dict[str, str], ready: MakeReady
) -> None:
    assert ready(engine, runtime, **variables)
