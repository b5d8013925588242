"""Connection to the stack's Redis, with error messages for users."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from racetrack.errors import RacetrackError

if TYPE_CHECKING:
    import redis

# Generous: Redis may answer late on a busy machine, and that must not end a run.
ANSWER_WITHIN_S = 30.0


@contextmanager
def connected(endpoint: str) -> Iterator["redis.Redis"]:
    """Open a client of the Redis at `host:port` that decodes answers as text. The client does not
    reconnect, since messages published while it is disconnected would be lost silently.

    Raises:
        RacetrackError: Redis does not answer, or refuses a command inside the context.
    """
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    host, _, port = endpoint.rpartition(":")
    try:
        with redis.Redis(
            host=host,
            port=int(port),
            decode_responses=True,
            retry=Retry(NoBackoff(), 0),
            socket_timeout=ANSWER_WITHIN_S,
        ) as client:
            yield client
    except redis.RedisError as error:
        raise RacetrackError(f"Redis at {endpoint}: {error}") from error
