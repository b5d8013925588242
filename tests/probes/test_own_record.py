"""Errors that pass while a broker comes up are told from those that it keeps answering."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from itertools import chain, repeat
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from racetrack.probes import own_record
from racetrack.probes.own_record import TOPIC, NoAnswer, OwnRecord, Refused

EXISTS, TIMED_OUT, NOT_CONTROLLER = 36, 7, 41  # as brokers answer
CLIENT_TIMED_OUT = -185


def answering(monkeypatch: pytest.MonkeyPatch, answers: Iterator[int]) -> list[int]:
    """A broker that answers these codes when it is asked to make a topic, 0 for that it did; and
    what it has answered."""
    answered: list[int] = []

    class Admin:
        def __init__(self, _settings: object) -> None:
            pass

        def create_topics(self, _topics: Sequence[Any], **_: float) -> dict[str, Future[None]]:
            answered.append(next(answers))
            made: Future[None] = Future()
            if answered[-1]:
                made.set_exception(KafkaException(KafkaError(answered[-1])))
            else:
                made.set_result(None)
            return {TOPIC: made}

    monkeypatch.setattr(own_record, "AdminClient", Admin)
    monkeypatch.setattr(own_record, "TRY_AGAIN_EVERY_S", 0.0)
    monkeypatch.setattr(OwnRecord, "_write", lambda *_: 0)
    monkeypatch.setattr(OwnRecord, "_read", lambda *_: None)
    return answered


@pytest.mark.parametrize("at_last", [0, EXISTS])
def test_errors_that_pass_while_the_topic_is_made_are_not_the_last_word(
    monkeypatch: pytest.MonkeyPatch, at_last: int
) -> None:
    codes = [TIMED_OUT, NOT_CONTROLLER, at_last]
    answered = answering(monkeypatch, iter(codes))
    own = OwnRecord("127.0.0.1:1", lambda: None)
    own.there_and_back(60)
    own.there_and_back(60)  # it is there now
    assert answered == codes


@pytest.mark.parametrize(("code", "end"), [(NOT_CONTROLLER, Refused), (CLIENT_TIMED_OUT, NoAnswer)])
def test_an_error_that_stays_while_the_topic_is_made_is_the_last_word(
    monkeypatch: pytest.MonkeyPatch, code: int, end: type[Exception]
) -> None:
    monkeypatch.setattr(own_record, "REFUSED_AFTER_S", 0.0)
    name = KafkaError(code).name()
    answered = answering(monkeypatch, chain([TIMED_OUT], repeat(code)))
    with pytest.raises(end, match=name):
        OwnRecord("127.0.0.1:1", lambda: None).there_and_back(60)
    assert len(answered) > 1


def test_an_error_that_stays_until_the_time_is_over_is_the_last_word(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answering(monkeypatch, repeat(NOT_CONTROLLER))
    with pytest.raises(Refused, match="NOT_CONTROLLER"):
        OwnRecord("127.0.0.1:1", lambda: None).there_and_back(0.0)
