"""Apache Storm, with a topology that writes its counts into Redis, where users read them."""

from racetrack.engines.shared.redis_sink.engine import WritesToRedis


class Storm(WritesToRedis):
    """See `racetrack.engines.contract.Engine`."""

    name = "storm"
    title = "Storm"
    order = 7
    services = ("storm",)
    script_ending = ".storm.java"
    version_part = "storm"


ENGINE = Storm()
