"""Apache Apex, with an application that writes its counts to Redis, where its users read them."""

from racetrack.engines.shared.redis_sink.engine import WritesToRedis


class Apex(WritesToRedis):
    """See `racetrack.engines.contract.Engine`."""

    name = "apex"
    title = "Apex"
    order = 8
    services = ("apex",)
    script_ending = ".apex.java"


ENGINE = Apex()
