"""Apex' local mode, one process, with the application in it."""

from racetrack.config import Settings
from racetrack.engines.apex.settings import ApexSettings
from racetrack.engines.shared.java_program.service import REDIS, Program


def heap(settings: Settings) -> str:
    """That of its one process."""
    return ApexSettings.of(settings).apex_heap


def told(settings: Settings) -> dict[str, str]:
    """What the program is told in every runtime."""
    own = ApexSettings.of(settings)
    return {
        "APEX_GUARANTEE": own.apex_guarantee,
        "APEX_FLUSH_MS": str(own.apex_flush_ms),
        "APEX_CHECKPOINT_WINDOWS": str(own.apex_checkpoint_windows),
        "APEX_LOCALITY": own.apex_locality,
    }


SERVICE = Program("apex", "apex-engine", heap, told, REDIS)
