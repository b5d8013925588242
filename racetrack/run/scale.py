"""Scaling: measures the capacity of an engine with several numbers of replicas, and the least
number of replicas that sustains a rate. Each run is on a fresh stack, in random order."""

import math
from dataclasses import dataclass

from racetrack import host
from racetrack.config import load
from racetrack.results.repeats import Piece, PlannedRun, ScaleRecord
from racetrack.run.compared_run import ComparedRun, Phases
from racetrack.run.repeats import PlanArguments, RepeatedMeasurement, random_order

PHASES = Phases(
    warm_up_s=120, settle_s=15, watch_s=60, saturated_for_s=60, saturation_s=120, batch_s=30
)
QUICK = Phases(
    warm_up_s=20, settle_s=3, watch_s=10, saturated_for_s=20, saturation_s=20, batch_s=10
)
# If equal shares would need more partitions than this, replicas may get different numbers of
# partitions.
MOST_PARTITIONS = 64
PARTITIONS = "PAGEVIEWS_PARTITIONS"


@dataclass(frozen=True)
class ScaleArguments(PlanArguments):
    """Arguments of the command line for a scaling measurement."""

    engine: str
    replicas: tuple[int, ...]
    hold_per_s: int | None = None


def planned(arguments: ScaleArguments) -> ScaleRecord:
    """Return the plan of a scaling measurement: the settings, and the order of runs.

    Raises:
        UsageError: a setting can't be used.
    """
    fixed = arguments.settings
    replicas = tuple(sorted(set(arguments.replicas)))
    partitions = load(fixed).pageviews_partitions
    if PARTITIONS not in arguments.given:
        partitions = shareable(partitions, replicas)
    own = {**fixed, PARTITIONS: str(partitions)}
    repeats, seed = arguments.choose_repeats(), arguments.choose_seed()
    return ScaleRecord(
        engine=arguments.engine,
        replicas=replicas,
        partitions=partitions,
        rates=(arguments.hold_per_s,) if arguments.hold_per_s else (),
        repeats=repeats,
        is_quick=arguments.is_quick,
        seed=seed,
        settings={arguments.engine: own},
        machine=host.describe(),
        workload=load(own).workload,
        order=random_order([(arguments.engine, each) for each in replicas], repeats, seed),
    )


def shareable(partitions: int, replicas: tuple[int, ...]) -> int:
    """Return the least number of partitions, at least `partitions`, that can be shared equally
    among each number of replicas. If it is above MOST_PARTITIONS, only ensure that each replica
    gets a partition."""
    step = math.lcm(*replicas)
    even = math.ceil(partitions / step) * step
    return even if even <= MOST_PARTITIONS else max(partitions, *replicas)


def describe_plan(record: ScaleRecord) -> list[str]:
    """Return lines on what a scaling measurement does and how long that takes."""
    phases, counts = Scaling.phases_of(record), ", ".join(map(str, record.replicas))
    order = " ".join(str(run.replicas) for run in record.order)
    minutes = f"{Scaling.left_s(record) / 60:.0f} minutes, and longer if other programs disturb it"
    saturated = f"saturation for {phases.saturation_s:g} s"
    held = f", then {record.hold_per_s:,}/s for {phases.watch_s:g} s" if record.hold_per_s else ""
    return [
        f"Scaling {record.engine} to {counts} replicas takes about {minutes}:",
        f"  {len(record.order)} runs on fresh stacks, with {order} replicas (seed {record.seed})",
        f"  each run: at most {phases.warm_up_s:g} s of warm-up, {saturated}{held}",
        f"  {describe_partitions(record)}",
    ]


def describe_conditions(record: ScaleRecord) -> list[str]:
    """Return lines on how scaling was measured."""
    lines = [
        f"{record.repeats} repeats on fresh stacks; order by seed {record.seed}.",
        f"{describe_partitions(record)}.",
    ]
    if record.is_quick:
        lines.append("Quick: windows are short and begin soon after the start.")
    return lines


def describe_partitions(record: ScaleRecord) -> str:
    """Describe how the replicas share the partitions of the input."""
    uneven = [str(each) for each in record.replicas if record.partitions % each]
    if not uneven:
        return f"{record.partitions} partitions, shared equally by the replicas"
    return (
        f"{record.partitions} partitions, which {' or '.join(uneven)} replicas can't share equally;"
        " that lowers their capacity"
    )


class Scaling(RepeatedMeasurement[ScaleRecord]):
    """Makes the remaining measurements of scaling."""

    plan, durations, quick = ScaleRecord, PHASES, QUICK

    @classmethod
    def left_s(cls, record: ScaleRecord) -> float:
        """See `RepeatedMeasurement.left_s`."""
        phases = cls.phases_of(record)
        # The engine is saturated during warm-up already.
        run_s = phases.run_s(len(record.rates)) - phases.saturated_for_s
        return run_s * sum(bool(record.missing(run)) for run in record.order)

    def measure(self, fresh: ComparedRun, run: PlannedRun) -> None:
        """Measure the capacity with this number of replicas, then the lag at the rate that the user
        wants to sustain, if any."""
        missing = self.record.missing(run)
        fresh.measure_capacity(run, missing, self.keep, self._capacity_of(run))

    def _capacity_of(self, run: PlannedRun) -> Piece | None:
        if None in self.record.missing(run):
            return None
        mine = (piece for piece in self.record.pieces if piece.is_of(run))
        return next((piece for piece in mine if piece.pageviews_per_s is None), None)
