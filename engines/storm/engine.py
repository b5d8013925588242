"""Apache Storm, with a topology that writes its counts to Redis, where its users read them."""

from engines.shared.redis_sink.engine import WritesToRedis


class Storm(WritesToRedis):
    """See `engines.contract.Engine`."""

    name = "storm"
    title = "Storm"
    services = ("storm",)
    script_ending = ".storm.java"


ENGINE = Storm()
