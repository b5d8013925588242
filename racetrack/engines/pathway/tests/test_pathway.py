"""Tests of what Pathway's program writes, without Kafka and without Pathway."""

import pytest

from racetrack.engines.pathway.program.outputs import Additions, Changes

BEFORE, AFTER = {"id_": 7, "price": 1_999, "name": "a"}, {"id_": 7, "price": -5, "name": None}


Sent = list[tuple[bytes | None, bytes | None]]


@pytest.fixture
def sent() -> Sent:
    return []


def test_a_changed_row_is_one_message_whichever_change_comes_first(sent: Sent) -> None:
    changes = Changes(lambda *message: sent.append(message), ["id_"], ["price"])
    for order in ((BEFORE, AFTER), (AFTER, BEFORE)):
        for row in order:
            changes.on_change(key=None, row=row, time=1, is_addition=row is AFTER)
        changes.on_time_end(1)
    # The key comes first, without blanks: readers find rows by it.
    assert sent == [(b"[7]", b'{"id":7,"price":"-0.05","name":null}')] * 2


def test_a_deleted_row_is_a_message_without_a_value_before_others_come(sent: Sent) -> None:
    changes = Changes(lambda *message: sent.append(message), ["item_id"])
    changes.on_change(key=None, row={"item_id": 2, "pageviews": 4}, time=1, is_addition=True)
    changes.on_time_end(1)
    changes.on_change(key=None, row={"item_id": 1, "pageviews": 5}, time=2, is_addition=True)
    changes.on_change(key=None, row={"item_id": 2, "pageviews": 4}, time=2, is_addition=False)
    changes.on_time_end(2)
    changes.on_time_end(3)
    first = (b"[2]", b'{"item_id":2,"pageviews":4}')
    assert sent == [first, (b"[2]", None), (b"[1]", b'{"item_id":1,"pageviews":5}')]


def test_added_rows_are_messages_without_a_key() -> None:
    sent, ended = Sent(), list[int]()
    additions = Additions(lambda *message: sent.append(message), lambda: ended.append(len(sent)))
    row = {"id_": 7, "price": 5}
    for _ in range(2):
        additions.on_change(key=None, row=row, time=1, is_addition=True)
    additions.on_time_end(1)
    additions.on_time_end(2)
    assert sent == [(None, b'{"id":7,"price":5}')] * 2
    assert ended == [2]  # the second minibatch had no rows
    with pytest.raises(RuntimeError):
        additions.on_change(key=None, row=row, time=3, is_addition=False)
