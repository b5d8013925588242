"""`./race check`: checks the Kafka that the user provides."""

import click

from racetrack.cli.parameters import Command, guarded, load_settings


@click.command(cls=Command)
def check() -> None:
    """Check that runs can use the Kafka at KAFKA_BOOTSTRAP_SERVERS, in at most ten seconds.

    Every run makes the same check before it starts anything. The command creates a topic and a
    consumer group, and removes them.

    \b
    Example:
        ./race check
    """
    from racetrack import kafka_endpoint
    from racetrack.errors import UsageError
    from racetrack.stack import own_kafka_check
    from racetrack.stack.own_kafka import OwnNames
    from racetrack.terminal import Screen

    screen = Screen()
    with guarded(screen):
        kafka = kafka_endpoint.elsewhere(load_settings())
        if not kafka:
            raise UsageError(
                "There is nothing to check: runs start a broker of their own. Set"
                " KAFKA_BOOTSTRAP_SERVERS for one that runs elsewhere (docs/own-parts.md)."
            )
        passed = own_kafka_check.check(kafka)
        OwnNames(kafka).require_none()
    screen.say(f"Kafka at {kafka}:")
    for operation in passed.operations:
        screen.say(f"  can {operation}")
    screen.say(f"  {passed.clock}")
