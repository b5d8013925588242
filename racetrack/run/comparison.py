"""Comparison: engines alternate on fresh stacks, and are measured at the same rates and at
saturation."""

import random
from collections.abc import Mapping
from dataclasses import dataclass

from racetrack import config, host
from racetrack.config import load
from racetrack.results.repeats import QUICK as QUICK_CAVEAT
from racetrack.results.repeats import ComparisonRecord, PlannedRun
from racetrack.run.compared_run import ComparedRun, Phases
from racetrack.run.repeats import PlanArguments, RepeatedMeasurement, random_order
from racetrack.workloads.contract import find_workload

# Rates of a comparison if the user sets none, as shares of the slowest engine's capacity, which
# probes measure. They are rounded down to one digit.
SHARES = (0.1, 0.25, 0.5)
# Rates of a quick comparison, which has no time for probes. Engines sustain them on two cores soon
# after their start.
QUICK_RATES = (1_000, 5_000)
READS_PER_S, TRACER_EVENTS_PER_S = 2, 12
# The heap of every engine is this share of the machine's memory, in steps of HEAP_STEP_MIB. The
# broker uses a sixth of the memory. The rest is for memory outside of heaps and for other services.
HEAP_SHARE, HEAP_STEP_MIB = 1 / 3, 256
PHASES = Phases(
    warm_up_s=60, settle_s=10, watch_s=40, saturated_for_s=50, saturation_s=60, batch_s=30
)
QUICK = Phases(
    warm_up_s=15, settle_s=3, watch_s=10, saturated_for_s=35, saturation_s=20, batch_s=10
)


@dataclass(frozen=True)
class ComparisonArguments(PlanArguments):
    """Arguments of the command line for a comparison."""

    engines: tuple[str, ...]
    rates: tuple[int, ...] = ()
    reads: bool = True


def planned(arguments: ComparisonArguments) -> ComparisonRecord:
    """Return the plan of a comparison: the settings of each engine, and the order of runs.

    Raises:
        UsageError: an engine or a setting can't be used.
    """
    fixed = arguments.settings
    settings = load(fixed)
    read = _reads(settings.workload) if arguments.reads else {}
    heaps = {name: _heaps(name) for name in arguments.engines}
    own = {
        name: {**fixed, **_not_given({**read, **heaps[name]}, arguments)}
        for name in arguments.engines
    }
    repeats, seed = arguments.choose_repeats(), arguments.choose_seed()
    replicas = settings.engine_replicas
    return ComparisonRecord(
        engines=arguments.engines,
        rates=tuple(sorted(arguments.rates or (QUICK_RATES if arguments.is_quick else ()))),
        repeats=repeats,
        is_quick=arguments.is_quick,
        reads_per_s=load(own[arguments.engines[0]]).reads_per_second,
        seed=seed,
        settings=own,
        heap_rule=_describe_heaps(heaps, arguments),
        machine=host.describe(),
        workload=settings.workload,
        order=random_order([(name, replicas) for name in arguments.engines], repeats, seed),
    )


def _not_given(settings: Mapping[str, str], arguments: ComparisonArguments) -> dict[str, str]:
    """Return those of `settings` that the user has not set."""
    return {name: value for name, value in settings.items() if name not in arguments.given}


def _reads(workload_name: str) -> dict[str, str]:
    """Return the settings that enable the view reader, and tracer events, from which the age of its
    answers is computed."""
    workload, wanted = find_workload(workload_name), {}
    if workload.queries:
        wanted["READS_PER_SECOND"] = str(READS_PER_S)
    if "tracer_events_per_second" in workload.rates:
        wanted["TRACER_EVENTS_PER_SECOND"] = str(TRACER_EVENTS_PER_S)
    return wanted


def _heaps(engine: str) -> dict[str, str]:
    """Return the settings for the heap sizes of an engine."""
    whole_mib = host.memory()[1] >> 20
    mib = max(1, int(whole_mib * HEAP_SHARE) // HEAP_STEP_MIB) * HEAP_STEP_MIB
    return {
        name.upper(): f"{mib}" if name.endswith("_mib") else f"{mib}m"
        for name in config.heaps_of_engine(engine)
    }


def _describe_heaps(heaps: Mapping[str, Mapping[str, str]], arguments: ComparisonArguments) -> str:
    every = {name: value for each in heaps.values() for name, value in each.items()}
    sized = ", ".join(f"{name}={value}" for name, value in _not_given(every, arguments).items())
    own = ", ".join(name for name in every if name in arguments.given)
    rule = f"Heaps are a third of the machine's memory: {sized}" if sized else ""
    return "; ".join(filter(None, (rule, f"set by the user: {own}" if own else "")))


def describe_plan(record: ComparisonRecord) -> list[str]:
    """Return lines on what a comparison does and how long that takes."""
    phases = Comparison.phases_of(record)
    rates = " and ".join(f"{rate:,}" for rate in record.rates)
    at = f"at {rates}/s" if rates else "at three rates that a short probe of each engine finds"
    order = " ".join(run.engine for run in record.order)
    left_min = Comparison.left_s(record) / 60
    minutes = f"{left_min:.0f} minutes, and longer if other programs disturb it"
    each_s = f"for {phases.watch_s:g} s each in random order"
    saturated = f"then saturation for {phases.saturation_s:g} s"
    lines = [
        f"Comparing {', '.join(record.engines)} takes about {minutes}:",
        f"  {len(record.order)} runs on fresh stacks, in the order {order} (seed {record.seed})",
        f"  each run: {phases.warm_up_s:g} s of warm-up, {at} {each_s}, {saturated}",
    ]
    return [*lines, *([f"  {record.heap_rule}"] if record.heap_rule else [])]


def describe_conditions(record: ComparisonRecord) -> list[str]:
    """Return lines on how a comparison was made: repeats, rates, reads and heaps."""
    rates = " and ".join(f"{rate:,}" for rate in record.rates)
    how = f"{record.repeats} repeats on fresh stacks, at {rates}/s and at saturation"
    lines = [f"{how}; order by seed {record.seed}."]
    if record.is_quick:
        lines.append(QUICK_CAVEAT)
    if record.reads_per_s:
        lines.append(
            f"A client read the views {record.reads_per_s} times a second, since an engine that"
            " computes only on reads would do nothing otherwise; --no-reads turns that off."
        )
    return [*lines, *([f"{record.heap_rule}."] if record.heap_rule else [])]


class Comparison(RepeatedMeasurement[ComparisonRecord]):
    """Makes the remaining measurements of a comparison."""

    plan, durations, quick = ComparisonRecord, PHASES, QUICK

    @classmethod
    def left_s(cls, record: ComparisonRecord) -> float:
        """See `RepeatedMeasurement.left_s`."""
        phases, rates = cls.phases_of(record), len(record.rates) or len(SHARES)
        runs = sum(bool(record.missing(run)) or not record.rates for run in record.order)
        probes = 0 if record.rates else len(record.engines) - len(record.probed_per_s)
        return runs * phases.run_s(rates) + probes * phases.probe_s

    def run(self) -> ComparisonRecord:
        """Find the rates by probes, unless they are given, and make the remaining measurements. If
        an engine fails, only its run ends.

        Raises:
            RacetrackError: a probe failed, so there are no rates.
            Interrupted: a signal was received. The comparison can be resumed; measurements made so
                far are kept.
        """
        if not self.record.rates:
            self._find_rates()
        return super().run()

    def measure(self, fresh: ComparedRun, run: PlannedRun) -> None:
        """Measure the lag at each rate, then the capacity."""
        fresh.measure(run, self.record.missing(run), self._rates_of(run), self.keep)

    def _rates_of(self, run: PlannedRun) -> list[int]:
        """Return the rates in the order in which this run measures them, which is random."""
        rng = random.Random(f"{self.record.seed} {run.engine} {run.repeat}")  # noqa: S311
        return rng.sample(self.record.rates, len(self.record.rates))

    def _find_rates(self) -> None:
        for name in self.record.engines:
            if name in self.record.probed_per_s:
                continue
            self._screen.heading(f"== probe of {name}")
            first = next(run for run in self.record.order if run.engine == name)
            with self.fresh(first) as fresh:
                per_s = fresh.probe()
            self.record.probed_per_s = {**self.record.probed_per_s, name: per_s}
            self.write()
            self._screen.say(f"  {name} counted {per_s:,.0f}/s at saturation, before its warm-up")
            self._guard.rearm()
        least = min(self.record.probed_per_s.values())
        self.record.rates = tuple(sorted({rounded_down(share * least) for share in SHARES}))
        self.write()


def rounded_down(per_s: float) -> int:
    """Round a rate down to one significant digit, at least 1, so that repeated comparisons use the
    same rates."""
    whole = max(1, int(per_s))
    unit = 10 ** (len(str(whole)) - 1)
    return int(whole // unit * unit)
