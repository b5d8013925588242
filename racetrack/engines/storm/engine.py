"""Apache Storm, with a topology that writes its counts into Redis, where users read them."""

from racetrack.config import Settings
from racetrack.engines.shared.redis_sink.engine import WritesToRedis
from racetrack.engines.storm.settings import StormSettings


class Storm(WritesToRedis):
    """See `racetrack.engines.contract.Engine`."""

    name = "storm"
    title = "Storm"
    order = 7
    services = ("storm",)
    script_ending = ".storm.java"
    version_part = "storm"

    def guarantee(self, settings: Settings) -> str:
        """Return the delivery guarantee that is set by STORM_GUARANTEE."""
        return StormSettings.of(settings).storm_guarantee.replace("_", " ")


ENGINE = Storm()
