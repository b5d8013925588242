"""Signals end the work once and never the cleaning up."""

import os
import signal
import threading
import time

import pytest

from racetrack import interrupts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_ends_the_work_and_later_ones_do_not(number: signal.Signals) -> None:
    said: list[str] = []
    cleaned = False
    with interrupts.guarded(said.append):
        with pytest.raises(interrupts.Interrupted, match=number.name) as raised:
            os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        cleaned = True
    assert cleaned
    assert raised.value.exit_code == 128 + number
    assert len(said) == 1


def test_a_disarmed_guard_only_reassures() -> None:
    said: list[str] = []
    with interrupts.guarded(said.append) as guard:
        guard.disarm()
        os.kill(os.getpid(), signal.SIGINT)
    assert "cleaning up" in said[0]


def test_a_signal_that_came_during_cleaning_up_ends_what_would_follow() -> None:
    with interrupts.guarded(lambda _line: None) as guard:
        guard.disarm()
        guard.rearm()
        guard.disarm()
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(interrupts.Interrupted, match="SIGTERM"):
            guard.rearm()


class Finalized:
    """While it is finalized a signal comes: whatever is raised there is forgotten."""

    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)


def test_a_signal_that_comes_where_nothing_can_be_raised_still_ends_the_work() -> None:
    said: list[str] = []
    with interrupts.guarded(said.append), pytest.raises(interrupts.Interrupted, match="SIGINT"):
        Finalized()
        threading.Event().wait(30)
    assert said == []


def test_what_a_library_in_c_made_of_a_signal_still_ends_the_work() -> None:
    with pytest.raises(interrupts.Interrupted, match="SIGTERM"), interrupts.guarded(print):
        # As CPython does where the library goes on and hands over what it made.
        found = interrupts.Interrupted(signal.SIGTERM)
        raise SystemError("returned a result with an exception set") from found


def test_a_fault_of_a_library_in_c_stays_one() -> None:
    with pytest.raises(SystemError, match="a fault"), interrupts.guarded(print):
        raise SystemError("a fault")


def test_nothing_is_sent_again_to_what_comes_after() -> None:
    with interrupts.guarded(print):
        Finalized()
    threading.Event().wait(2 * interrupts.AGAIN_AFTER_S)


def test_nohup_stays_nohup() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupts.guarded(print):
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_the_handlers_before_it_are_restored() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with interrupts.guarded(print):
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before
