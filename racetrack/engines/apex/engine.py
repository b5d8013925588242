"""Apache Apex, with an application that writes its counts into Redis, where users read them."""

from racetrack.config import Settings
from racetrack.engines.apex.settings import ApexSettings
from racetrack.engines.shared.redis_sink.engine import WritesToRedis


class Apex(WritesToRedis):
    """See `racetrack.engines.contract.Engine`."""

    name = "apex"
    title = "Apex"
    order = 8
    services = ("apex",)
    script_ending = ".apex.java"
    version_part = "apex"

    def guarantee(self, settings: Settings) -> str:
        """Return the delivery guarantee that is set by APEX_GUARANTEE."""
        return ApexSettings.of(settings).apex_guarantee.replace("_", " ")


ENGINE = Apex()
