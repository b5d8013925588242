"""Tests of the checks before a stack starts, which refuse settings without effect, and of the free
space during a run."""

from collections.abc import Callable
from pathlib import Path

import pytest

from racetrack.config import every_setting, load
from racetrack.engines import find_engine
from racetrack.errors import SetupError, UsageError
from racetrack.run import checks, faults
from racetrack.run.checks import NoSpace, SpaceWatch, make_ready, services_of
from racetrack.stack.contract import DataFolder, ServiceClock
from racetrack.stack.runtime import open_stack
from tests.run.fakes import FakeEngine, FakeStack
from tests.run.fluid_session import FakeClock
from tests.some_engines import EXAMPLE

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


@pytest.mark.parametrize(
    ("engine", "runtime", "variables", "refused"),
    [
        (EXAMPLE, "native", {"REDPANDA_SMP": "2", "REDPANDA_MEMORY": "2G"}, "REDPANDA_SMP"),
        (EXAMPLE, "native", {"REDPANDA_SMP": "1"}, ""),  # the value in .env
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


@pytest.mark.parametrize(("offset_ms", "uncertainty_ms"), [(-15.0, 6.0), (0.0, 21.0)])
def test_a_generator_whose_clock_is_off_is_refused(offset_ms: float, uncertainty_ms: float) -> None:
    far = FakeStack()
    checks.require_known_clock(find_engine("dh"), far.as_stack())
    far.clocks = {"loadgen": ServiceClock("the load generator", offset_ms, uncertainty_ms)}
    with pytest.raises(SetupError, match="the load generator stamps events"):
        checks.require_known_clock(find_engine("dh"), far.as_stack())


def test_data_that_fills_its_room_ends_the_run_with_the_time_that_it_takes(tmp_path: Path) -> None:
    data, clock, stack = tmp_path / "data", FakeClock(), FakeStack()
    stack.folders = [DataFolder(data, "/dev/shm", "Enlarge it")]
    free_mib = {data: 1000, tmp_path: 1000}

    def measure(folder: Path) -> tuple[int, int]:
        return free_mib[folder] << 20, 1100 << 20

    watch = SpaceWatch(stack.as_stack(), tmp_path, measure, clock, 0.0)
    watch.check()
    watch.load_changes()
    clock.now_s, free_mib[data] = 20.0, 360  # 32 MiB a second
    watch.check()
    clock.now_s, free_mib[data] = 29.5, 56
    with pytest.raises(NoSpace) as failed:
        watch.check()
    assert "1.1 GiB in all, this load fills it in 31 s. Enlarge it" in str(failed.value)
    assert failed.value.exit_code == 1
