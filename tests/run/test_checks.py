"""Tests of the checks before a stack starts, which refuse settings without effect, and of the free
space during a run."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from racetrack import plugins
from racetrack.config import every_setting, load, of_other_engines
from racetrack.engines import calibration_engine, find_engine
from racetrack.errors import SetupError, UsageError
from racetrack.install.versions import in_env_files
from racetrack.results.defects import InjectedDefect
from racetrack.results.run import RunArguments
from racetrack.run import checks, faults
from racetrack.run.checks import OPTIONAL_RATES, NoSpace, SpaceWatch, make_ready, services_of
from racetrack.stack import applicability
from racetrack.stack.contract import DataFolder, ServiceClock
from racetrack.stack.runtime import open_stack
from racetrack.workloads.contract import find_workload
from tests.run.fakes import FakeEngine, FakeStack
from tests.run.fluid_session import FakeClock
from tests.service_facts import FACTS, OTHER_VALUES, another_value
from tests.some_engines import CALIBRATION, EXAMPLE

PORTS = {name.upper(): "1" for name in every_setting() if name.endswith("_port")}
FLAWED = calibration_engine().settings_of(InjectedDefect(delay_ms=7))
OUTSIDE = {"KAFKA_BOOTSTRAP_SERVERS": "a.example:9092", "KAFKA_TOPIC_PREFIX": "race-1."}
MakeReady = Callable[..., bool]


@pytest.fixture
def ready(monkeypatch: pytest.MonkeyPatch) -> MakeReady:
    """Return a function that makes a stack ready, given these environment variables, and returns
    whether the stack was prepared."""
    for name in every_setting():
        monkeypatch.delenv(name.upper(), raising=False)

    def make(engine: str, runtime: str, **variables: str) -> bool:
        with monkeypatch.context() as environment:
            for name, value in variables.items():
                environment.setenv(name, value)
            stack = FakeStack(load(), runtime)
            make_ready(find_engine(engine), stack.as_stack(), print)
        return bool(stack.prepared)

    return make


def of_others(engine: str) -> dict[str, str]:
    """Return changed values of all settings for services that this engine does not use."""
    services = services_of(find_engine(engine), load())
    owners = applicability.owners().items()
    of_services = {name for name, service in owners if service not in services}
    of_engines = {*map(str.upper, of_other_engines(engine))} & in_env_files().keys()
    without_value = applicability.harness_settings() - OTHER_VALUES.keys()
    return {name: another_value(name) for name in of_services | of_engines - without_value}


@pytest.mark.parametrize(
    ("engine", "runtime", "variables", "refused"),
    [
        (EXAMPLE, "native", {"REDPANDA_SMP": "2", "REDPANDA_MEMORY": "2G"}, "REDPANDA_SMP"),
        (CALIBRATION, "native", {"REDPANDA_TMPFS": "1g"}, "REDPANDA_TMPFS"),
        (EXAMPLE, "compose", {"REDPANDA_MEMORY": "7G", "AIRGAP": "true"}, "REDPANDA_MEMORY"),
        (EXAMPLE, "native", {"REDPANDA_SMP": "1"}, ""),  # the value in .env
        (EXAMPLE, "native", {name: "7g" for facts in FACTS for name in facts.jvm_of}, ""),
        (EXAMPLE, "native", {**PORTS, "REDPANDA_VERSION": "9", "STACK_NAME": "other"}, ""),
        (EXAMPLE, "compose", {**of_others(EXAMPLE), "KAFKA_CONTROLLER_PORT": "1"}, ""),
        (CALIBRATION, "native", FLAWED, ""),
        (EXAMPLE, "compose", {"AIRGAP": "true", "KAFKA_HEAP": "7g", "REDPANDA_TMPFS": "7g"}, ""),
    ],
)
def test_a_setting_of_this_run_that_does_nothing_is_refused_but_none_for_others(
    engine: str, runtime: str, variables: dict[str, str], refused: str, ready: MakeReady
) -> None:
    if not refused:
        assert ready(engine, runtime, **variables)
        return
    with pytest.raises(UsageError, match=f"^{refused} has no effect") as refusal:
        ready(engine, runtime, **variables)
    assert refusal.value.exit_code == 2


@pytest.mark.parametrize(
    ("rate", "lacks"),
    [*((rate.upper(), "rates") for rate in OPTIONAL_RATES), ("READS_PER_SECOND", "queries")],
)
def test_a_rate_of_what_the_workload_does_not_have_is_refused(rate: str, lacks: str) -> None:
    whole = replace(find_workload(plugins.default_workload()), rates=OPTIONAL_RATES)
    engine, settings = find_engine(EXAMPLE), load({rate: "2"})
    checks.require_raced_on(engine, settings, lambda _: whole)
    lacking = replace(whole, rates=()) if lacks == "rates" else replace(whole, queries=())
    checks.require_raced_on(engine, load(), lambda _: lacking)
    with pytest.raises(UsageError, match=rate):
        checks.require_raced_on(engine, settings, lambda _: lacking)


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


def test_a_broker_elsewhere_is_not_started_and_can_not_be_hit_or_multiplied() -> None:
    assert "broker" in services_of(FakeEngine(), load())
    assert "broker" not in services_of(FakeEngine(), load(OUTSIDE))
    fault = faults.parse("pause:broker@1s+1s")
    with pytest.raises(UsageError, match="the broker runs elsewhere"):
        faults.services_hit(fault, FakeEngine(), load(OUTSIDE))
    with pytest.raises(UsageError, match="RUNTIME=native"):
        open_stack(load({**OUTSIDE, "RUNTIME": "compose"}), [], print)
    with pytest.raises(UsageError, match="BROKER_REPLICAS"):
        checks.require_replicas(load({**OUTSIDE, "BROKER_REPLICAS": "2"}), "kubernetes")
    checks.require_replicas(load({**OUTSIDE, "LOADGEN_REPLICAS": "2"}), "kubernetes")
    with pytest.raises(UsageError, match="can't use a Kafka that runs elsewhere"):
        checks.require_kafka_usable(find_engine("mz"), load(OUTSIDE))
    checks.require_kafka_usable(find_engine("mz"), load())


def test_the_reader_learns_that_the_broker_is_unknown_and_how_clocks_differ() -> None:
    own = FakeStack(load(OUTSIDE))
    own.clocks = {"broker": ServiceClock("the broker", -3.26, 0.84)}
    elsewhere, clock = checks.caveats_of_elsewhere(find_engine("flink"), own.as_stack())
    assert "CPU and memory can't be measured from here, so they are blank" in elsewhere
    assert "the broker's clock is 3.3 ms behind this machine's, ± 0.8 ms" in clock
    assert len(checks.caveats_of_elsewhere(find_engine("dh"), own.as_stack())) == 1
    assert checks.caveats_of_elsewhere(find_engine("flink"), FakeStack().as_stack()) == []


@pytest.mark.parametrize(("offset_ms", "uncertainty_ms"), [(-15.0, 6.0), (0.0, 21.0)])
def test_a_generator_whose_clock_is_off_is_refused(offset_ms: float, uncertainty_ms: float) -> None:
    far = FakeStack()
    checks.require_known_clock(find_engine("dh"), far.as_stack())
    far.clocks = {"loadgen": ServiceClock("the load generator", offset_ms, uncertainty_ms)}
    with pytest.raises(SetupError, match="the load generator stamps events"):
        checks.require_known_clock(find_engine("dh"), far.as_stack())


MIB = 1 << 20


class Disk(dict[Path, int]):
    """Fake file systems of 1,100 MiB: free MiB by folder."""

    def measure(self, folder: Path) -> tuple[int, int]:
        return self[folder] * MIB, 1100 * MIB


def stack_on(data: Path, **settings: str) -> FakeStack:
    stack = FakeStack(load(settings))
    stack.folders = [DataFolder(data, "/dev/shm", "Enlarge it")]
    return stack


def test_data_that_fills_its_room_ends_the_run_with_the_time_that_it_takes(tmp_path: Path) -> None:
    data, clock = tmp_path / "data", FakeClock()
    disk = Disk({data: 1000, tmp_path: 1000})
    watch = SpaceWatch(stack_on(data).as_stack(), tmp_path, disk.measure, clock, 0.0)
    watch.check()
    watch.load_changes()
    clock.now_s, disk[data] = 20.0, 360  # 32 MiB a second
    watch.check()
    clock.now_s, disk[data] = 29.5, 56
    with pytest.raises(NoSpace) as failed:
        watch.check()
    assert "1.1 GiB in all, this load fills it in 31 s. Enlarge it" in str(failed.value)
    assert failed.value.exit_code == 1


def test_a_full_disk_of_run_folders_ends_the_run_and_reports_what_to_do(tmp_path: Path) -> None:
    disk = Disk({tmp_path: 9})
    watch = SpaceWatch(FakeStack().as_stack(), tmp_path, disk.measure, every_s=0.0)
    watch.check()
    disk[tmp_path] = 7
    with pytest.raises(NoSpace, match=r"7 MiB left.* LOGS_FOLDER"):
        watch.check()
    SpaceWatch(stack_on(tmp_path / "gone").as_stack(), tmp_path).check()  # of an ended container


@pytest.mark.parametrize(
    ("samples", "settings", "warned"),
    [
        (60, {}, ["1000 MiB free: this load fills it in 31 s, and the run takes 65 s"]),
        (20, {}, []),
        (60, {"KAFKA_RETENTION_BYTES": "1000000"}, []),
        (60, {"BROKER_REPLICAS": "2"}, ["fills it in 62 s"]),
    ],
)
def test_a_load_that_is_sure_to_fill_the_room_is_foreseen(
    tmp_path: Path, samples: int, settings: dict[str, str], warned: list[str]
) -> None:
    arguments = RunArguments(events_per_s=300_000, wait_s=5, samples=samples, delay_s=1.0)
    stack = stack_on(tmp_path, **settings).as_stack()
    lines = list(checks.space_warnings(stack, arguments, Disk({tmp_path: 1000}).measure))
    assert all(text in line for text, line in zip(warned, lines, strict=True))


def test_the_room_of_other_machines_is_as_they_report_it(tmp_path: Path) -> None:
    stack, clock, disk = FakeStack(), FakeClock(), Disk({tmp_path: 1000})

    def report(free_mib: int) -> None:
        space = free_mib * MIB, 4096 * MIB
        name = "/data of the pod redpanda-0"
        stack.folders = [DataFolder(Path("/redpanda-0/data"), name, "Raise it", space)]

    report(1000)
    watch = SpaceWatch(stack.as_stack(), tmp_path, disk.measure, clock, 0.0)
    watch.load_changes()
    clock.now_s += 10
    report(200)  # 80 MiB a second
    with pytest.raises(NoSpace, match=r"in /data of the pod redpanda-0: 4\.0 GiB .* in 12 s"):
        watch.check()
