"""Apex' local mode, one process, with the application in it."""

from racetrack.config import Settings
from racetrack.engines.apex.knobs import Knobs
from racetrack.engines.shared.java_program.service import REDIS, Program


def heap(settings: Settings) -> str:
    """That of its one process."""
    return Knobs.of(settings).apex_heap


def told(settings: Settings) -> dict[str, str]:
    """What the program is told in every runtime."""
    knobs = Knobs.of(settings)
    return {
        "APEX_GUARANTEE": knobs.apex_guarantee,
        "APEX_FLUSH_MS": str(knobs.apex_flush_ms),
        "APEX_CHECKPOINT_WINDOWS": str(knobs.apex_checkpoint_windows),
        "APEX_LOCALITY": knobs.apex_locality,
    }


SERVICE = Program("apex", "apex-engine", heap, told, REDIS)
