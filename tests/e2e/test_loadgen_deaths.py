"""End-to-end tests that the load generator ends in order, and survives the death of other
processes. All tests share one generator, including the load of earlier tests."""

import os
import re
import signal

import psutil
import pytest

from racetrack.errors import RacetrackError
from racetrack.probes.loadgen import LoadgenError
from tests.e2e.loadgen_stack import LoadgenStack, Message, as_started
from tests.e2e.shared import WaitUntil


def test_sigterm_ends_it_in_order_and_the_same_seed_gives_the_same_again(
    loadgen: LoadgenStack, wait_until: WaitUntil
) -> None:
    loadgen.rates(20_000)
    loadgen.watch(0.8)
    main = psutil.Process(loadgen.native.pids(["loadgen"])["loadgen"][0])
    again = as_started(main, loadgen.native.log_of("loadgen"))
    main.send_signal(signal.SIGTERM)
    wait_until(lambda: "loadgen" in loadgen.native.died(), "end after SIGTERM")
    assert loadgen.native.died()["loadgen"].startswith("exit code 0;")
    (stopped,) = re.findall(r"Stopped: (\d+) events handed over, 0 refused", loadgen.log())
    wait_until(lambda: sum(loadgen.broker.end_offsets()) == int(stopped), "the last of them")
    loadgen.before = loadgen.broker.end_offsets()
    assert int(stopped) == sum(loadgen.before)

    again()
    wait_until(lambda: answers(loadgen), "answer of the successor")
    loadgen.rates(20_000)
    loadgen.watch(0.5)
    handed, published = loadgen.pause()
    assert handed == published
    first, second = loadgen.read([0] * len(handed)), loadgen.read(loadgen.before)
    for partition in range(len(handed)):
        assert beginning(second, partition) == beginning(first, partition)


def test_a_worker_that_dies_is_replaced_and_its_loss_is_reported(
    loadgen: LoadgenStack, wait_until: WaitUntil
) -> None:
    loadgen.rates(20_000)
    loadgen.watch(0.5)
    (worker,) = loadgen.stats()["workers"]
    os.kill(worker["pid"], signal.SIGKILL)
    loadgen.may_repeat = True
    death = rf"Worker {worker['pid']} died .killed by signal 9.; up to about (\d+) events"
    wait_until(lambda: re.search(death, loadgen.log()) is not None, "word of the death")
    wait_until(lambda: works(loadgen, worker["pid"]), "successor")
    (message,) = re.findall(death, loadgen.log())
    # The counts may lack the last turn of the worker, so the loss may seem negative. On a busy
    # machine, that turn is one batch per partition, and half a second of pageviews may be lost.
    assert -6_000 < loss(loadgen) <= int(message) + 20_000 * 0.5
    nothing_is_lost_from_now_on(loadgen)


def test_it_goes_on_when_the_broker_is_back(loadgen: LoadgenStack, wait_until: WaitUntil) -> None:
    loadgen.rates(5_000)
    start_broker = loadgen.kill("broker")
    wait_until(lambda: "Kafka: " in loadgen.log(), "word of the broker")
    lines = loadgen.watch(1)
    due = [sum(line["events"]["due"]) for line in (lines[0], lines[-1])]
    seconds = (lines[-1]["now_ms"] - lines[0]["now_ms"]) / 1000
    assert (due[1] - due[0]) / seconds == pytest.approx(5_000, rel=0.005)
    start_broker()
    wait_until(lambda: "Kafka: no more errors" in loadgen.log(), "return of the broker")
    wait_until(lambda: tells_offsets(loadgen), "leaders of the partitions")
    # With acks=0, messages that are on their way are lost, but not those in the client's queue.
    assert 0 <= loss(loadgen) < 5_000
    assert sum(loadgen.stats()["events"]["refused"]) == 0
    nothing_is_lost_from_now_on(loadgen)


def loss(loadgen: LoadgenStack) -> int:
    """Pause the load; return the number of pageviews handed over that are not in the broker."""
    handed, published = loadgen.pause()
    lost = [a - b for a, b in zip(handed, published, strict=True)]
    loadgen.before = [a - b for a, b in zip(loadgen.before, lost, strict=True)]
    return sum(lost)


def nothing_is_lost_from_now_on(loadgen: LoadgenStack) -> None:
    loadgen.rates(5_000)
    loadgen.watch(0.5)
    handed, published = loadgen.pause()
    assert handed == published


def answers(loadgen: LoadgenStack) -> bool:
    try:
        loadgen.stats()
    except LoadgenError:
        return False
    return True


def tells_offsets(loadgen: LoadgenStack) -> bool:
    """Return whether the broker reports offsets. After a restart, partitions may lack a leader."""
    try:
        loadgen.broker.end_offsets()
    except RacetrackError:
        return False
    return True


def works(loadgen: LoadgenStack, other_than: int) -> bool:
    """Return whether another worker has all partitions and is up to date."""
    stats = loadgen.stats()
    (worker,) = stats["workers"]
    pageviews = stats["events"]
    waiting = sum(pageviews["due"]) - sum(pageviews["handed"]) - sum(pageviews["refused"])
    caught_up = bool(waiting < pageviews["rate"] * 0.1)
    return caught_up and worker["alive"] is True and worker["pid"] != other_than


def beginning(messages: list[Message], partition: int) -> list[tuple[str, str, str]]:
    """Return a partition's first thousand pageviews without their times."""
    mine = [m for m in messages if m.partition == partition][:1000]
    assert len(mine) == 1000
    return [(m.key, m.value["url"], m.value["channel"]) for m in mine]
