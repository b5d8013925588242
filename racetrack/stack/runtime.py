"""Chooses the runtime that a stack is started with."""

from racetrack.settings import Settings
from racetrack.stack.contract import Stack
from racetrack.stack.native.stack import NativeStack


def open_stack(settings: Settings) -> Stack:
    """A stack of these settings; nothing is started yet."""
    return NativeStack(settings)
