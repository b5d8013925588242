"""What is dropped is told from what is slow, on brokers and generators that are made up."""

import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from racetrack.probes import arrived, own_record, write_check
from racetrack.probes.arrived import Arrivals, Counts, Youngest
from racetrack.probes.broker import OffsetsError
from racetrack.probes.own_record import NoAnswer, Refused
from racetrack.probes.write_check import WriteCheck, WriteCheckError
from racetrack.stack.contract import Endpoints
from racetrack.workload import find_workload

T0 = 1_790_000_000_000
WHERE = Endpoints("127.0.0.1:9092", "", "", "", 0, "127.0.0.1", 8090, "")
TOPIC = find_workload("shop").topic


@dataclass
class Stage:
    """Two partitions. Each look is one more step of `counts` and `ends`; the last one stays. No
    ends: the broker does not tell them in time."""

    counts_told: list[Counts]
    ends: list[list[int]]
    due_ms: Mapping[int, int] = field(default_factory=dict)  # of each partition's youngest

    def counts(self) -> Counts:
        return self.counts_told.pop(0) if len(self.counts_told) > 1 else self.counts_told[0]

    def end_offsets(self, within_s: float) -> list[int]:
        assert within_s > 0
        ends = self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]
        if not ends:
            raise OffsetsError("It does not tell the offsets.")
        return ends

    def youngest(self, end_offsets: Mapping[int, int]) -> Mapping[int, Youngest]:
        return {p: Youngest(end - 1, self.due_ms.get(p, T0)) for p, end in end_offsets.items()}

    def close(self) -> None:
        pass


def counts(*handed: int, at_ms: int = 0, queued: int = 0, refused: int = 0) -> Counts:
    given = [refused] * len(handed)
    due = [a + b for a, b in zip(handed, given, strict=True)]
    return Counts(T0 + at_ms, due, handed, given, [queued] * len(handed))


def checked(stage: Stage) -> tuple[Arrivals, arrived.Missing | None]:
    """After a look, and a last one."""
    arrivals = Arrivals(stage, 1.0)
    return arrivals, arrivals.look(1.0) or arrivals.look(1.0) or arrivals.still()


def test_what_is_all_there_is_proven_at_once() -> None:
    arrivals = Arrivals(Stage([counts(10, 20)], [[10, 20]]), 1.0)
    assert arrivals.look(1.0) is None
    assert arrivals.proven


def test_a_load_that_goes_on_is_proven_by_its_youngest() -> None:
    """There is always something on its way, so counts never agree."""
    told = [counts(10, 20), counts(90, 95, at_ms=50)]
    stage = Stage(told, [[8, 18], [80, 85]], {0: T0 + 1, 1: T0 + 1})
    arrivals = Arrivals(stage, 1.0)
    assert arrivals.look(1.0) is None
    assert arrivals.proven


def test_a_youngest_from_before_proves_nothing() -> None:
    told = [counts(10, 20), counts(90, 95, at_ms=50)]
    arrivals, missing = checked(Stage(told, [[8, 18], [9, 19]]))
    assert missing is None
    assert not arrivals.proven
    assert arrivals.any_arrived


@pytest.mark.parametrize("queued", [0, 1_000_000])
def test_some_that_were_dropped_are_missed_however_many_come_after(queued: int) -> None:
    told = [counts(100, 100), counts(9_000, 9_000, at_ms=900, queued=queued)]
    stage = Stage(told, [[0, 0], [99, 4_000]], {0: T0 + 1, 1: T0 + 1})
    arrivals = Arrivals(stage, 1.0)
    missing = arrivals.look(1.0)
    assert missing and not missing.still
    assert "partition 0 has 98 pageviews before" in missing.what
    assert "partition 1" not in missing.what


def test_what_the_client_gave_up_is_not_missed() -> None:
    """The end of the run tells of it."""
    told = [counts(100, 100), counts(60, 60, at_ms=900, refused=50)]
    stage = Stage(told, [[0, 0], [51, 51]], {0: T0 + 1, 1: T0 + 1})
    assert Arrivals(stage, 1.0).look(1.0) is None


def test_a_broker_that_is_far_behind_but_comes_on_is_slow() -> None:
    told = [counts(500_000, 500_000), counts(900_000, 900_000, at_ms=4_000, queued=400_000)]
    arrivals, missing = checked(Stage(told, [[10, 10], [11, 10], [900, 800]]))
    assert missing is None
    assert not arrivals.proven


def of_workers(handed: list[int], *queued: int, at_ms: int = 0) -> Counts:
    """As the generator tells it of a worker for each partition."""
    workers = [{"partitions": [p], "queued": count} for p, count in enumerate(queued)]
    pageviews = {"due": handed, "handed": handed, "refused": [0] * len(handed)}
    return Counts.of({"now_ms": T0 + at_ms, "pageviews": pageviews, "workers": workers})


def test_a_partition_whose_pageviews_may_all_wait_in_its_worker_is_given_time() -> None:
    told = [of_workers([500, 500], 490, 0), of_workers([900, 900], 890, 0, at_ms=4_000)]
    arrivals, missing = checked(Stage(told, [[10, 10], [10, 800]]))
    assert missing is None
    assert "nothing came of partition 0" in arrivals.unproven()
    assert "890 wait in its worker" in arrivals.unproven()


def test_a_partition_is_not_excused_by_what_waits_in_the_worker_of_another() -> None:
    told = [of_workers([10, 500], 0, 0), of_workers([900, 900], 0, 100, at_ms=4_000)]
    missing = checked(Stage(told, [[10, 10], [10, 800]]))[1]
    assert missing and missing.still
    assert "nothing came of partition 0" in missing.what
    assert "partition 1" not in missing.what


def test_what_was_sent_before_the_check_began_is_missed_though_its_worker_has_a_queue() -> None:
    """Under load a worker always has one."""
    told = [counts(500, 500, queued=20), counts(900, 900, at_ms=4_000, queued=20)]
    missing = checked(Stage(told, [[10, 10], [10, 800]]))[1]
    assert missing and missing.still
    assert "nothing came of partition 0" in missing.what


def test_workers_whose_partitions_have_moved_count_for_none() -> None:
    workers = [{"partitions": [], "queued": 7}, {"partitions": [1], "queued": 5}]
    pageviews = {"due": [1, 1], "handed": [1, 1], "refused": [0, 0]}
    stats = {"now_ms": T0, "pageviews": pageviews, "workers": workers}
    assert Counts.of(stats).queued == [0, 5]


def test_a_partition_of_which_all_was_sent_and_nothing_came_is_missed() -> None:
    told = [counts(500, 500), counts(900, 900, at_ms=4_000)]
    missing = checked(Stage(told, [[10, 10], [10, 800]]))[1]
    assert missing and missing.still
    assert "nothing came of partition 0 in 0.0 s (handed over 900, arrived 10," in missing.what
    assert "partition 1" not in missing.what


@pytest.mark.parametrize(("queued", "refused"), [(0, 0), (400, 0), (0, 400)])
def test_nothing_at_all_is_missed_wherever_it_waits(queued: int, refused: int) -> None:
    told = [counts(10, 10), counts(10 + queued, 11, at_ms=4_000, queued=queued, refused=refused)]
    missing = checked(Stage(told, [[10, 10]]))[1]
    assert missing and missing.still
    assert f"{queued} wait" in missing.what


@dataclass
class Own:
    """The harness's record: what becomes of each try."""

    ends: Iterator[Exception | None]

    def there_and_back(self, _within_s: float) -> None:
        if end := next(self.ends):
            raise end


class Answer:
    """What a broker refuses with, as confluent-kafka tells it."""

    def __init__(self, code: int, name: str) -> None:
        self.code, self.name, self.str = (lambda: code), (lambda: name), (lambda: f"Broker: {name}")


def run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stage: Stage, *own: Exception | None
) -> list[str]:
    """What a check says that goes through."""
    log = tmp_path / "broker.log"
    log.write_text("one\nNo space left on device\n")
    said: list[str] = []
    monkeypatch.setattr(arrived, "STILL_AFTER_S", 0.0)
    monkeypatch.setattr(write_check, "_Real", lambda *_: stage)
    monkeypatch.setattr(WriteCheck, "_limits", lambda _: "")
    check: Any = WriteCheck(WHERE, TOPIC, log, said.append, lambda: None)
    check._own = Own(iter(own))
    check.run()
    return said


QUIET = Stage([counts(10, 10)], [[10, 10]])
NOTHING = Stage([counts(10, 10), counts(90, 90, at_ms=4_000)], [[10, 10]])
SLOW = Stage([counts(10, 10), counts(90, 90, at_ms=4_000)], [[1, 1], [9, 9]])


def test_a_healthy_broker_is_not_spoken_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert run(monkeypatch, tmp_path, stage_of(QUIET), None) == []


@pytest.mark.parametrize(
    ("code", "name", "why"),
    [
        (19, "NOT_ENOUGH_REPLICAS", "min.insync.replicas"),
        (10, "MSG_SIZE_TOO_LARGE", "max.message.bytes"),
        (8, "BROKER_NOT_AVAILABLE", "storage_min_free_bytes"),
        (56, "KAFKA_STORAGE_ERROR", "disk is full"),
        (42, "INVALID_REQUEST", "own words are below"),
    ],
)
def test_a_refusal_is_said_with_its_cause_and_the_brokers_words(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, code: int, name: str, why: str
) -> None:
    refused: Any = Answer(code, name)
    with pytest.raises(WriteCheckError, match="refuses writes") as failed:
        run(monkeypatch, tmp_path, stage_of(QUIET), Refused(refused))
    for part in (f"{name}: Broker: {name}", why, "No space left on device"):
        assert part in str(failed.value)


def test_no_answer_is_the_end_only_if_nothing_arrives(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    silence = NoAnswer("the client saw: Connection refused")
    with pytest.raises(WriteCheckError, match=r"does not answer a write.*Connection refused"):
        run(monkeypatch, tmp_path, stage_of(QUIET), silence)
    said = run(monkeypatch, tmp_path, stage_of(SLOW), silence)
    assert "did not answer a write in 3.0 s (the client saw: Connection refused)" in said[0]
    assert "not all came of partitions 0, 1" in said[1]
    assert "(handed over 180, arrived 18)" in said[1]


def test_a_broker_that_tells_no_offsets_at_a_look_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    silent = Stage([counts(10, 10)], [[1, 1], [], [], [10, 10]])
    assert arrived.wait(Arrivals(silent, 1.0), 60.0, lambda: None) is None
    told_once = Stage(NOTHING.counts_told[:], [[10, 10], []])
    (said,) = run(monkeypatch, tmp_path, told_once, None)
    assert "told its end offsets once" in said


def test_what_came_of_an_earlier_load_does_not_hide_that_the_rest_is_dropped(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On a busy machine some of it is still on its way when a check begins."""
    with pytest.raises(WriteCheckError, match=r"nothing came of partition 0.*with acks=all"):
        run(monkeypatch, tmp_path, stage_of(SLOW), None, None)
    comes_on = replace(SLOW, ends=[[1, 1], [9, 9], [9, 9], [20, 20]])
    (said,) = run(monkeypatch, tmp_path, stage_of(comes_on), None)
    assert "(handed over 180, arrived 40)" in said


@pytest.mark.slow
def test_a_broker_that_hangs_is_told_in_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log = tmp_path / "broker.log"
    log.write_text("stuck in fsync\n")
    monkeypatch.setattr(write_check, "Control", lambda *_: Quiet())
    with socket.create_server(("127.0.0.1", 0)) as hung:
        where = replace(WHERE, kafka=f"127.0.0.1:{hung.getsockname()[1]}")
        began_s = time.monotonic()
        with pytest.raises(
            WriteCheckError, match=r"does not answer a write.*it may hang"
        ) as failed:
            WriteCheck(where, TOPIC, log, print, lambda: None).run()
        assert time.monotonic() - began_s < write_check.ENDS_WITHIN_S
    assert "stuck in fsync" in str(failed.value)


class Quiet:
    """A generator that has sent something and goes on."""

    def stats(self, *, quietly: bool) -> Mapping[str, Any]:
        assert quietly
        pageviews = {"due": [10], "handed": [10], "refused": [0]}
        workers = [{"partitions": [0], "queued": 0}]
        return {"now_ms": T0, "pageviews": pageviews, "workers": workers}

    def close(self) -> None:
        pass


def test_all_that_a_check_may_wait_for_leaves_time_to_say_so() -> None:
    waits_s = (
        write_check.WRITTEN_WITHIN_S,
        write_check.OFFSETS_WITHIN_S,
        arrived.STILL_AFTER_S,
        arrived.READ_WITHIN_S,
        write_check.AGAIN_WITHIN_S,
        write_check.OFFSETS_AGAIN_WITHIN_S,
        write_check.LIMITS_WITHIN_S,
    )
    assert sum(waits_s) <= write_check.ENDS_WITHIN_S - 0.5
    a_second_time_s = write_check.TWICE_BEFORE_S + write_check.OFFSETS_AGAIN_WITHIN_S
    assert a_second_time_s + sum(waits_s[2:]) <= write_check.ENDS_WITHIN_S - 0.5
    assert write_check.WRITTEN_WITHIN_S > own_record.REFUSED_AFTER_S


def stage_of(which: Stage) -> Stage:
    return replace(which, counts_told=list(which.counts_told), ends=list(which.ends))


def test_nothing_arriving_is_the_end_only_if_another_record_is_taken_meanwhile(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(WriteCheckError, match=r"nothing came of partition 0.*with acks=all"):
        run(monkeypatch, tmp_path, stage_of(NOTHING), None, None)
    said = run(monkeypatch, tmp_path, stage_of(NOTHING), None, NoAnswer("nothing"))
    assert "did not answer another write" in said[0]
    assert "nothing came of partition 0" in said[1]
