"""When reads are due: at random, as people come. At a steady beat they would meet an engine that
updates in cycles always at the same points of its cycle, and tell those for the whole. Random times
don't (Wolff 1982, "Poisson arrivals see time averages")."""

import random
from collections.abc import Iterator

# The same times in each run, so that whoever reads a run's files knows when the next were due.
SEED = 1


def due_s(per_s: float) -> Iterator[float]:
    """Seconds since the start, rising, to no end."""
    generator = random.Random(SEED)  # noqa: S311  # nothing is kept secret by it
    at_s = 0.0
    while True:
        at_s += generator.expovariate(per_s)
        yield at_s
