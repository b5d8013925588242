"""Apache Storm, with a topology that writes its counts to Redis, where its users read them."""

from racetrack.engines.shared.redis_sink.engine import WritesToRedis


class Storm(WritesToRedis):
    """See `racetrack.engines.contract.Engine`."""

    name = "storm"
    title = "Storm"
    order = 7
    services = ("storm",)
    script_ending = ".storm.java"


ENGINE = Storm()
