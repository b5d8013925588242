"""What an engine would work on cores that nobody shares: its rate as a function of how fast the
cores were and of how much it has had to do. Pure functions.

log(rate / running) = level + power · log(speed / fastest) + growth · (counted − usual)

where `running` is the part of the time in which the engine did not stand still to collect garbage:
by least squares over moments, where each search has a level of its own (fixed effects). So what the
cores' speed does is learnt within searches only, and how far their levels agree is a test of it.
docs/limit.md holds it against made-up engines.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from racetrack.analysis import compare
from racetrack.analysis.capacity import Estimate
from racetrack.analysis.compare import CONFIDENCE

MILLION = 1e6
# With fewer moments left over than that, an interval says nothing.
FEWEST_DEGREES = 4
# What stood still for most of the time says little of how fast it works when it does not.
LEAST_RUNNING = 0.5
# Speeds that are this close differ by rounding only: nobody can tell what they do.
ALIKE = 1e-6


@dataclass(frozen=True)
class Observation:
    """Work of some seconds: which search it is of, its rate, how fast the cores were, how many
    the engine had counted by its middle, and for what part of it it did not stand still."""

    search: int
    per_s: float
    core_mib_per_s: float
    counted: float
    running: float = 1.0


@dataclass(frozen=True)
class Slope:
    """What was fitted, with half its 95 % interval (Student's t)."""

    value: float
    half: float


@dataclass(frozen=True)
class Likened:
    """`power`: the rate goes as the cores' speed to it. `growth`: what a million more to hold adds
    to the rate's logarithm (a part of the rate, where it is small). `per_s`: what each search would
    have found on cores as fast as at `fastest_mib_per_s`, after `counted`, where it runs for the
    part `running` of the time; events per second: the last two are means over all moments.
    `capacity` is their mean: its interval is Student's t over the searches, and wider by what is
    not known of the power, since cores were slower than that on the whole."""

    power: Slope
    growth: Slope
    counted: float
    running: float
    per_s: tuple[float, ...]
    capacity: Estimate


def likened(moments: Sequence[Observation], fastest_mib_per_s: float) -> Likened | None:
    """The searches at like speed; None where there are too few moments, or the cores' speed or what
    was counted never changed."""
    running = statistics.fmean(of.running for of in moments) if moments else 1.0
    moments = [of for of in moments if of.running >= LEAST_RUNNING and of.per_s > 0]
    searches = sorted({of.search for of in moments})
    degrees = len(moments) - len(searches) - 2
    if degrees < FEWEST_DEGREES:
        return None
    speeds = np.log([of.core_mib_per_s / fastest_mib_per_s for of in moments])
    counted = np.array([of.counted for of in moments])
    usual = float(counted.mean())
    levels = np.array([[of.search == search for search in searches] for of in moments], dtype=float)
    known = np.column_stack([levels, speeds, (counted - usual) / MILLION])
    if np.linalg.matrix_rank(known, ALIKE) < known.shape[1]:
        return None
    rates = np.log([of.per_s / of.running for of in moments])
    found = np.linalg.lstsq(known, rates)[0]
    left = rates - known @ found
    errors = np.sqrt(np.diag(np.linalg.inv(known.T @ known)) * float(left @ left) / degrees)
    halves = errors * float(stats.t.ppf((1 + CONFIDENCE) / 2, degrees))
    power, growth = (Slope(float(found[n]), float(halves[n])) for n in (-2, -1))
    of_searches = compare.mean(found[: len(searches)].tolist())
    between = math.inf if of_searches.half is None else of_searches.half
    half = math.hypot(between, power.half * float(speeds.mean()))
    return Likened(
        power=power,
        growth=growth,
        counted=usual,
        running=running,
        per_s=tuple(running * math.exp(level) for level in found[: len(searches)]),
        capacity=Estimate(
            per_s=running * math.exp(of_searches.mean),
            low=running * math.exp(of_searches.mean - half),
            high=running * math.exp(of_searches.mean + half),
        ),
    )
