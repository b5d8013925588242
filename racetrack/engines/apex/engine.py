"""Apache Apex, with an application that writes its counts into Redis, where users read them."""

from racetrack.engines.shared.redis_sink.engine import WritesToRedis


class Apex(WritesToRedis):
    """See `racetrack.engines.contract.Engine`."""

    name = "apex"
    title = "Apex"
    order = 8
    services = ("apex",)
    script_ending = ".apex.java"
    version_part = "apex"


ENGINE = Apex()
