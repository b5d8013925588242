"""Tests of `--fault`: the actions, their order, and the record."""

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from racetrack.config import load
from racetrack.errors import RacetrackError
from racetrack.probes.usage import Meter
from racetrack.results.run import DoneFault
from racetrack.run import faults
from racetrack.run.engine_run import EngineRun
from racetrack.run.faults import ExpectedOutages, FaultInjector, ServiceControl
from racetrack.stack.contract import Cluster
from tests.run.fakes import FakeEngine, FakeStack
from tests.waiting import wait_until

BOTH = FakeEngine.services


class Bench:
    def __init__(self, *texts: str, counted_within_s: float = 60.0) -> None:
        self.stack, engine = FakeStack(), FakeEngine()
        did, nobody = self.stack.did, dict[str, list[int]]
        delay = SimpleNamespace(record_loss=lambda _: did.append(("lost", "counts")))
        self.run_of_engine = SimpleNamespace(
            engine=engine, services=engine.services, counted=7, delay=delay
        )
        control = ServiceControl(
            [cast(EngineRun, self.run_of_engine)],
            stack=self.stack.as_stack(),
            outages=ExpectedOutages(),
            meter=Meter(nobody),
        )
        self.faults = FaultInjector(
            [faults.parse(text) for text in texts],
            engine=engine,
            settings=load(),
            control=control,
            say=print,
            counted_within_s=counted_within_s,
        )

    def _is_done(self) -> bool:
        self.faults.check()
        return self.faults.all_done

    def run(self) -> tuple[DoneFault, ...]:
        self.faults.start()
        wait_until(self._is_done, "end of the faults")
        return self.faults.record().done


def test_an_engine_s_counts_are_gone_and_its_demo_is_loaded_again() -> None:
    bench = Bench("kill:engine@0s")
    [done] = bench.run()
    each = [[(how, name) for name in BOTH] for how in ("kill", "restart")]
    assert bench.stack.did == [*each[0], ("lost", "counts"), *each[1], ("load", "demo")]
    assert done.services == BOTH
    assert done.reload_s is not None


def test_a_fault_after_a_number_of_events_waits_for_them_and_for_the_end_of_the_window() -> None:
    bench = Bench("kill:engine@500 events", "pause:broker@0s+0.01s")
    bench.faults.start()
    wait_until(lambda: ("resume", "broker") in bench.stack.did, "fault at a time")
    bench.run_of_engine.counted = 501
    assert bench.faults.record().done[-1].counted == 7
    bench.faults.window_over.set()
    wait_until(lambda: bench.faults.all_done, "end of the faults")
    killed = bench.faults.record().done[-1]
    assert (killed.how, killed.counted) == ("kill", 501)


def test_an_engine_that_does_not_count_the_events_of_a_fault_is_named_as_the_reason() -> None:
    bench = Bench("kill:engine@500 events", counted_within_s=0.1)
    bench.faults.window_over.set()
    with pytest.raises(RacetrackError, match=r"kill:engine@500 events.*only 7 events"):
        bench.run()
    assert not bench.stack.did


def test_a_service_that_does_not_come_back_ends_the_run() -> None:
    bench = Bench("kill:mysql@0s")
    bench.stack.refuses = True
    with pytest.raises(RacetrackError, match=r"^After kill:mysql@0s: mysql did not start"):
        bench.run()
    assert bench.faults.record().done[0].until_ms is None


def test_a_run_that_ends_does_not_wait_for_faults_to_come_and_leaves_nobody_paused() -> None:
    bench = Bench("pause:broker@0s+1000s", "kill:mysql@1000s")
    bench.faults.start()
    wait_until(lambda: bench.stack.did, "pause")
    bench.faults.stop()
    bench.faults.join()
    assert bench.stack.did == [("pause", "broker"), ("resume", "broker")]


def test_only_services_with_an_expected_outage_are_excused() -> None:
    outages = ExpectedOutages()
    before_s = time.monotonic()
    assert not outages.any_since(before_s, ["broker"])
    outages.begin(["broker"])
    assert outages.any_since(time.monotonic(), ["broker", "mysql"])
    assert not outages.any_since(before_s, ["mysql"])
    outages.end(["broker"])
    assert outages.any_since(before_s, ["broker"])
    assert not outages.any_since(time.monotonic(), ["broker"])


class FakeCluster:
    """A fake cluster that records what is done to it."""

    def __init__(self, did: list[tuple[str, str]]) -> None:
        self._did = did

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *given: self._did.append((name, " ".join(map(str, given))))


UNDONE = ("undo_drain", "")


@pytest.mark.parametrize(
    ("text", "did", "services"),
    [
        ("delete:worker-0@0s", [("delete_pod", "worker-0"), UNDONE], ("worker",)),
        ("drain:far@0s+0.1s", [("drain", "far"), UNDONE], BOTH),
        ("cut:far@0s+2s", [("cut", "far 2.0")], BOTH),
    ],
)
def test_what_is_hit_in_a_cluster_is_given_back_and_awaited(
    text: str, did: list[tuple[str, str]], services: tuple[str, ...]
) -> None:
    bench = Bench(text)
    bench.stack.cluster = cast(Cluster, FakeCluster(bench.stack.did))
    [done] = bench.run()
    is_awaited = UNDONE in did
    awaited = [("wait_until_ready", str(services)), ("load", "demo")] if is_awaited else []
    assert bench.stack.did == did + awaited
    assert done.services == services
    assert (done.restart_s is not None, done.reload_s is not None) == (is_awaited, is_awaited)
