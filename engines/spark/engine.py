"""Spark Structured Streaming: a program that keeps the views from when it starts; each view,
progress too, is an upsert topic, written once a micro-batch."""

from engines.shared.upsert.engine import UpsertEngine


class Spark(UpsertEngine):
    """See `engines.contract.Engine`."""

    name = "spark"
    title = "Spark"
    needs = ("registry", "debezium")
    services = ("spark",)
    script_ending = ".spark.java"


ENGINE = Spark()
