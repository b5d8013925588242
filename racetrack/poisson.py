"""Times of reads, a Poisson process. Reads at fixed intervals would sample the same points of an
engine's update cycle (Wolff 1982, "Poisson arrivals see time averages")."""

import random
from collections.abc import Iterator

# A fixed seed: the analysis computes the due times of reads that were never sent.
SEED = 1


def due_s(per_s: float) -> Iterator[float]:
    """Yield due times in seconds since the start, without end."""
    generator = random.Random(SEED)  # noqa: S311  # not for secrets
    at_s = 0.0
    while True:
        at_s += generator.expovariate(per_s)
        yield at_s
