"""Scaling of an engine: capacity by number of replicas, and the least number that holds a rate.

These are the two questions of Theodolite (Henning and Hasselbring 2022): the capacity for given
resources, and the resources that a load demands. Capacities are compared by the same method as
engines are (`racetrack.analysis.comparison`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from racetrack.analysis.compare import Ratio
from racetrack.analysis.comparison import CAPACITY, difference, mean_of
from racetrack.analysis.sides import side_of
from racetrack.results.figures import VerdictKind
from racetrack.results.repeats import Piece
from racetrack.results.scale import ScaleRecord

# Fewer runs that agree do not decide whether a rate is held.
SURE_RUNS = 2
HOLDS = (str(VerdictKind.KEPT_UP), str(VerdictKind.UNDECIDED))


@dataclass(frozen=True)
class Step:
    """Results with one number of replicas.

    `capacity` is in pageviews per second, and `factor` is its ratio to the capacity of the fewest
    replicas, both with a 95 % interval. `at_least` is true if runs ended before they showed the
    whole capacity. `held` and `failed` count the runs that held the rate and that did not.
    """

    replicas: int
    runs: int
    capacity: Ratio | None = None
    factor: Ratio | None = None
    at_least: bool = False
    held: int = 0
    failed: int = 0

    @property
    def holds(self) -> bool | None:
        """True if these replicas hold the rate, False if not, None if the runs do not decide it."""
        if max(self.held, self.failed) < SURE_RUNS or min(self.held, self.failed) > 0:
            return None
        return self.held > 0


@dataclass(frozen=True)
class Scale:
    """Scaling of an engine. `steps` are in the order of their numbers of replicas."""

    engine: str
    steps: tuple[Step, ...]
    hold_per_s: int | None = None

    @property
    def first(self) -> Step:
        """The fewest replicas, to which the others are compared."""
        return self.steps[0]

    def share_of_ideal(self, step: Step) -> float | None:
        """Return the factor as a share of the ideal one: the ratio of the numbers of replicas."""
        return step.factor.ratio * self.first.replicas / step.replicas if step.factor else None

    def candidates(self) -> tuple[Step, ...]:
        """Return the steps that may be the least that hold the rate, in rising order. The last is
        the least that certainly holds it, unless it is itself undecided. Empty if no number of
        replicas holds the rate."""
        sure = next((step.replicas for step in self.steps if step.holds), None)
        return tuple(
            step
            for step in self.steps
            if step.holds is not False and (sure is None or step.replicas <= sure)
        )


def scale_of(record: ScaleRecord) -> Scale:
    """Return the scaling that a record shows so far."""
    mine = {
        each: [one for one in record.pieces if one.replicas == each] for each in record.replicas
    }
    sides = {each: side_of(str(each), pieces, record.rates) for each, pieces in mine.items()}
    known = {each: side for each, side in sides.items() if (CAPACITY.key, None) in side.figures}
    among, first, steps = list(known.values()), record.replicas[0], []
    for each, pieces in mine.items():
        capacity = factor = None
        if each in known:
            capacity = mean_of(known[each], CAPACITY.key, None, among)
        if each in known and first in known and each != first:
            found = difference(known[each], known[first], CAPACITY.key, None, among)
            factor = found.ratio if found else None
        steps.append(
            Step(
                replicas=each,
                runs=sum(one.outcome == "ok" and one.pageviews_per_s is None for one in pieces),
                capacity=capacity,
                factor=factor,
                at_least=CAPACITY.key in sides[each].lower_bounds,
                held=_runs(pieces, HOLDS),
                failed=_runs(pieces, (str(VerdictKind.FELL_BEHIND),)),
            )
        )
    return Scale(record.engine, tuple(steps), record.hold_per_s)


def _runs(pieces: Sequence[Piece], verdicts: Sequence[str]) -> int:
    at_rate = [one for one in pieces if one.pageviews_per_s is not None and one.outcome == "ok"]
    return sum(one.verdict in verdicts for one in at_rate)
