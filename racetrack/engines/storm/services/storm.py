"""Storm's local cluster, one process, with the topology in it."""

from racetrack.config import Settings
from racetrack.engines.shared.java_program.service import REDIS, Program
from racetrack.engines.storm.settings import StormSettings


def heap(settings: Settings) -> str:
    """That of its one process."""
    return StormSettings.of(settings).storm_heap


def told(settings: Settings) -> dict[str, str]:
    """What the program is told in every runtime."""
    own = StormSettings.of(settings)
    return {
        "STORM_GUARANTEE": own.storm_guarantee,
        "STORM_FLUSH_MS": str(own.storm_flush_ms),
        "STORM_COMMIT_MS": str(own.storm_commit_ms),
        "STORM_PARALLELISM": str(own.storm_parallelism),
    }


SERVICE = Program("storm", "storm-server", heap, told, REDIS)
