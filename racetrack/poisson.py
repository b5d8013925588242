"""Times at which views are read: a Poisson process.

Reads at fixed intervals could always meet the same point of an engine's update cycle (Wolff 1982,
"Poisson arrivals see time averages").
"""

import random
from collections.abc import Iterator

# Fixed, so that the analysis can compute the due times of reads that were never sent.
SEED = 1


def due_s(per_s: float) -> Iterator[float]:
    """Yield due times without end, in seconds since the start, for a mean rate of `per_s`."""
    generator = random.Random(SEED)  # noqa: S311  # not for secrets
    at_s = 0.0
    while True:
        at_s += generator.expovariate(per_s)
        yield at_s
