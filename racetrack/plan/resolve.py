"""Resolution of a plan: from the plan, the command line and the environment to the runs with their
settings, loads and order. Nothing is started."""

import math
import os
import random
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TypeVar

import psutil
from pydantic import Field, ValidationError

from racetrack import config, plugins
from racetrack.engines import find_engine
from racetrack.errors import UsageError
from racetrack.host import separable_cores, threads_of_core
from racetrack.plan import variants as grammar
from racetrack.plan.model import (
    PLANS,
    SLOWEST,
    START_AND_STOP_S,
    Load,
    Phase,
    Plan,
    PlanModel,
    PlannedVariant,
    Saturate,
    Search,
    Verify,
    WarmUp,
    Window,
    load_of,
)
from racetrack.plan.setting_files import for_workload, read_file
from racetrack.results.experiment import EXPERIMENT_FILE, ExperimentRecord
from racetrack.stack import applicability, resources
from racetrack.units import parse_cores
from racetrack.workloads import load_profile
from racetrack.workloads.contract import find_workload, overrides, work_of, workload_in

Value = TypeVar("Value")
READS, TRACERS = "READS_PER_SECOND", "TRACER_EVENTS_PER_SECOND"
PARTITIONS, RETENTION = "EVENTS_PARTITIONS", "KAFKA_RETENTION_BYTES"
# Settings that the environment gives even to a plan whose settings are fixed: runtime, ports,
# folders, and what counts as noise.
OF_RUNTIME = ("RUNTIME", "AIRGAP")
OF_PLACE = (*OF_RUNTIME, "NOISE_GATE", "BIND_ADDRESS", "STACK_NAME")
ENDS_OF_PLACE = ("_PORT", "_FOLDER", "_MAX_PCT")
MASKED = "**********"  # a secret in a record
# More windows than this take days, so they are a mistake.
MOST_WINDOWS = 2_000
# Steps of the size of heaps, and the fraction of memory that the broker may use for the main topic.
HEAP_STEP_MIB, KEPT_OF_MEMORY = 256, 1 / 6
# If equal shares would need more partitions than this, replicas may get different numbers of them.
MOST_PARTITIONS = 64
# Rates at which the broker is measured without an engine if a plan finds its own later.
INPUT_RATES, INPUT_SETTLE_S = (1_000, 10_000, 100_000), 10.0
# Broker and generator are compiled while they run.
INPUT_WARM_UP_S = 60.0
# Estimates, in seconds: a window's last rows, verification, and draining
# before a trial. A search usually has this number of trials.
ROWS_S, VERIFY_S, DRAIN_S, TRIALS = 2.0, 15.0, 20.0, 3
# Estimated time until a fault begins and the lag is normal again, in seconds.
FAULT_S = 90.0


@dataclass(frozen=True)
class Options:
    """Options of the command line, which take precedence over the plan."""

    variants: tuple[str, ...] = ()
    loads: tuple[str, ...] = ()
    repeats: int | None = None
    seed: int | None = None
    workload: str | None = None
    reads: bool = True
    queries: str | None = None

    @property
    def settings(self) -> dict[str, str]:
        """Settings that follow from the options."""
        of_workload = overrides(self.workload, self.queries)
        return of_workload | ({} if self.reads else {READS: "0", TRACERS: "0"})


class Cell(PlanModel):
    """A run on a fresh stack. `settings` override those of `.env` and of the environment; `own` are
    the names of those by which its variant differs from others. If phases ask for a fresh stack,
    runs of the same variant and repeat follow each other, with rising numbers `leg`."""

    variant: str
    engine: str
    repeat: int
    settings: dict[str, str]
    own: tuple[str, ...] = ()
    phases: tuple[Phase, ...] = Field(min_length=1)
    leg: int = 1
    disturb: float = 0.0
    start_and_stop_s: float = START_AND_STOP_S

    def __str__(self) -> str:
        at = f" at {self.loads[0]}" if self.is_single else ""
        leg = f", stack {self.leg}" if self.leg > 1 else ""
        return f"{self.variant}{at}, repeat {self.repeat}{leg}"

    def follows(self, other: "Cell") -> bool:
        """Return whether this run may use what another one, on an earlier stack, measured."""
        is_same = (self.variant, self.repeat) == (other.variant, other.repeat)
        return is_same and self.leg > other.leg

    @property
    def needs_capacity(self) -> bool:
        """True if a phase refers to a capacity that no phase before it measures."""
        for phase in self.phases:
            if isinstance(phase, Saturate):
                return False
            if isinstance(phase, Search):
                return True
            loads = map(load_of, phase.loads) if isinstance(phase, Window) else ()
            if any(load.share and not load.is_common for load in loads):
                return True
        return False

    @property
    def loads(self) -> tuple[str, ...]:
        """Loads in the order in which the run measures them."""
        windows = (phase for phase in self.phases if isinstance(phase, Window))
        return tuple(chain.from_iterable(window.loads for window in windows))

    @property
    def decide_within_s(self) -> float:
        """Longest extension of the window until the verdict is decided, in seconds. An idle engine
        has no verdict, and one with faults or a changing load has no steady state."""
        windows = [phase for phase in self.phases if isinstance(phase, Window)]
        if not windows or windows[0].faults:
            return 0.0
        load = load_of(self.loads[0])
        if not (load.per_s or load.share):
            return 0.0
        return windows[0].decide_within_s

    @property
    def is_single(self) -> bool:
        """True if the run has just one window, with samples of top."""
        first, *others = self.phases
        is_top = isinstance(first, Window) and bool(first.top) and len(first.loads) == 1
        return is_top and all(isinstance(phase, Verify) for phase in others)

    @property
    def estimated_s(self) -> float:
        """Estimated duration in seconds."""
        is_saturated = any(isinstance(p, WarmUp) and p.at == "saturation" for p in self.phases)
        return self.start_and_stop_s + sum(phase_s(phase, is_saturated) for phase in self.phases)


class ResolvedPlan(PlanModel):
    """A plan whose runs are fixed, in order. Rates that a scout finds are still shares.
    `environment` are the settings that the environment gave, without secrets and places."""

    name: str
    variants: tuple[str, ...]
    cells: tuple[Cell, ...] = Field(min_length=1)
    environment: dict[str, str] = Field(default_factory=dict)
    repeats: int
    seed: int
    scout_s: float = 0.0
    input_alone_s: float = 0.0
    fresh: str = "variant"
    baseline: str = ""
    reference: str = ""
    workload: str = ""
    note: str = ""
    remarks: tuple[str, ...] = ()

    def settings_of(self, cell: Cell) -> dict[str, str]:
        """Return the settings of a run that override those of `.env`. They are the same when the
        plan is resumed in another environment."""
        return {**self.environment, **cell.settings}

    @property
    def estimated_s(self) -> float:
        """Estimated duration in seconds, unless other programs disturb it."""
        scout_s = self.scout_s and START_AND_STOP_S + self.scout_s
        each_s = INPUT_SETTLE_S + self.input_alone_s
        rates_s = INPUT_WARM_UP_S + len(INPUT_RATES) * each_s
        input_s = self.input_alone_s and START_AND_STOP_S + rates_s
        return len(self.variants) * scout_s + input_s + sum(cell.estimated_s for cell in self.cells)


def recorded(record: ExperimentRecord) -> ResolvedPlan:
    """Return the plan of an experiment.

    Raises:
        UsageError: it is no plan that this version of Racetrack can read.
    """
    try:
        plan, why = ResolvedPlan.model_validate(record.plan), ""
        if {run.cell for run in record.runs} != set(range(len(plan.cells))):
            why = "its runs are not those of the plan"
        elif set(plan.variants) != {cell.variant for cell in plan.cells}:
            why = "its variants are not those of its runs"
        for load in chain.from_iterable(cell.loads for cell in plan.cells):
            load_of(load)
    except ValidationError as error:
        first = error.errors()[0]
        why = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except ValueError as error:
        why = str(error)
    if why:
        raise UsageError(
            f"The plan in {EXPERIMENT_FILE} can't be carried on: {why}. Another version of"
            " Racetrack wrote it, or it was changed."
        )
    return plan


@dataclass
class _Variant:
    """A variant while it is being resolved. `own` are the settings of its files (`of_files`), of
    its text and of the plan's table; `skipped` are those of its files without effect."""

    label: str
    engine: str
    planned: PlannedVariant
    own: dict[str, str]
    text: str
    settings: dict[str, str] = field(default_factory=dict)
    phases: tuple[Phase, ...] = ()
    has_file: bool = False
    of_files: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def remarks(self) -> list[str]:
        """Texts on the settings of its files, and on those without effect."""
        has = ", ".join(f"{name}={self.own[name]}" for name in self.of_files)
        return [
            *([f"{self.label} has {has}"] if has else []),
            *(f"{self.label}: {name} is skipped: {why}" for name, why in self.skipped.items()),
        ]


def resolve(
    plan: Plan,
    name: str,
    options: Options = Options(),
    *,
    memory_bytes: int | None = None,
    cores: Sequence[int] | None = None,
) -> ResolvedPlan:
    """Resolve a plan, with the settings in the environment. `memory_bytes` and `cores` are those of
    the machine, by default this one.

    Raises:
        UsageError: the plan is not possible; nothing was started.
    """
    environment = _settings_given()
    if options.queries and not options.workload:
        of_plan = _not_given(plan.settings, plan, frozenset(environment))
        options = replace(options, workload=of_plan.get("WORKLOAD"))
    memory_bytes = memory_bytes or psutil.virtual_memory().total
    variants, left_out = _variants(plan, name, options, frozenset(environment))
    for variant in variants:
        variant.phases = _phases(variant, plan, name, options)
    repeats = options.repeats or plan.repeats
    windows = repeats * sum(map(_count_windows, variants))
    if windows > MOST_WINDOWS:
        raise UsageError(
            f"{name} has {windows:,} windows; {MOST_WINDOWS:,} are possible. Name fewer variants,"
            " loads or repeats."
        )
    if not windows:
        raise UsageError(f"{name} measures nothing: add loads, or a phase with `saturate`.")
    remarks = [*left_out, *chain.from_iterable(variant.remarks for variant in variants)]
    remarks += _give_settings(variants, plan, options, frozenset(environment), memory_bytes)
    for variant in variants:
        variant.phases = _long_enough(variant)
    if plan.cores == "apart":
        own = resources.apart(separable_cores() if cores is None else cores)
        remarks += _separate_cores(variants, own, frozenset(environment))
    seed = next(
        (seed for seed in (options.seed, plan.seed) if seed is not None),
        random.randrange(10_000),  # noqa: S311
    )
    cells = _cells(variants, plan, repeats, seed)
    return ResolvedPlan(
        name=name,
        variants=tuple(variant.label for variant in variants),
        cells=tuple(cells),
        environment=_lasting(environment),
        repeats=repeats,
        seed=seed,
        input_alone_s=plan.input_alone_s,
        scout_s=plan.scout_s if any(map(_has_share, variants)) else 0.0,
        fresh=plan.fresh,
        baseline=plan.baseline and variants[0].label,
        reference=_reference(plan.reference, name),
        workload=", ".join(dict.fromkeys(map(_work_of, variants))),
        note=plan.note,
        remarks=tuple(remarks),
    )


def _settings_given() -> dict[str, str]:
    """Return the settings in the environment, by their names in `.env`."""
    known = {name.upper() for name in config.every_setting()}
    return {name.upper(): value for name, value in os.environ.items() if name.upper() in known}


def _lasting(settings: Mapping[str, str]) -> dict[str, str]:
    """Return settings without secrets and, except for the runtime, without those of a place."""
    masked = config.for_record(config.load())
    return {
        name: value
        for name, value in settings.items()
        if (name in OF_RUNTIME or not _is_of_place(name))
        and masked.get(name.lower()) not in (None, MASKED)
    }


def _reference(reference: str, name: str) -> str:
    """Return the file of a reference, which is beside the plan; "" if there is none.

    Raises:
        UsageError: there is no such file.
    """
    if not reference:
        return ""
    folder = Path(name).parent if name.endswith(".toml") else PLANS
    if not (folder / reference).is_file():
        raise UsageError(f"{name}: reference: there is no file {folder / reference}.")
    return reference if folder == PLANS else str((folder / reference).absolute())


def phase_s(phase: Phase, is_saturated: bool = False) -> float:
    """Return the estimated duration of a phase in seconds; `is_saturated` if a warm-up before it
    has saturated the engine."""
    match phase:
        case WarmUp():
            return phase.for_s
        case Window():
            return sum(_window_s(phase, load_of(text)) for text in phase.loads)
        case Saturate():
            return phase.for_s + (0.0 if is_saturated else phase.hold_s)
        case Search():
            return TRIALS * (DRAIN_S + phase.settle_s + phase.trial_s)
        case _:
            return VERIFY_S


def _window_s(phase: Window, load: Load) -> float:
    profile_s = load_profile.parse(load.profile).duration_s if load.profile else 0.0
    faults_s = FAULT_S * len(phase.faults)
    return phase.settle_s + max(phase.for_s, profile_s) + ROWS_S + faults_s


def _work_of(variant: _Variant) -> str:
    return work_of(_load(variant, variant.settings).model_dump())


def _long_enough(variant: _Variant) -> tuple[Phase, ...]:
    """Return the phases of a variant, with windows at saturation as long as its views need."""
    settings = _load(variant, variant.settings)
    least_s = workload_in(settings).least_saturation_s
    return tuple(
        phase.model_copy(update={"for_s": least_s})
        if isinstance(phase, Saturate) and phase.for_s < least_s
        else phase
        for phase in variant.phases
    )


def _has_share(variant: _Variant) -> bool:
    windows = (phase for phase in variant.phases if isinstance(phase, Window))
    return any(load_of(text).share for window in windows for text in window.loads)


def _count_windows(variant: _Variant) -> int:
    return sum(
        len(phase.loads) if isinstance(phase, Window) else isinstance(phase, Saturate | Search)
        for phase in variant.phases
    )


def _variants(
    plan: Plan, name: str, options: Options, given: frozenset[str]
) -> tuple[list[_Variant], list[str]]:
    """Return the variants: those of the plan that the command line names, or those of the command
    line if the plan has none. The second result are remarks on variants that are left out."""
    base = _not_given(plan.settings, plan, given)
    each = {
        name: values
        for name, values in _not_given(plan.each, plan, given).items()
        if name not in options.settings
    }
    if plan.all_variants:
        variants = _expanded(plan.all_variants, base, options.settings, each)
        unmatched = [text for text in options.variants if not _matching(variants, text)]
        if unmatched:
            labels = ", ".join(variant.label for variant in variants)
            raise UsageError(f"{unmatched[0]} is not in {name}, which has {labels}.")
        if options.variants:
            chosen = chain.from_iterable(_matching(variants, text) for text in options.variants)
            labels_chosen = {variant.label for variant in chosen}
            variants = [variant for variant in variants if variant.label in labels_chosen]
    elif not options.variants:
        engines = ", ".join(plugins.engine_names())
        raise UsageError(f"{name} has no variants: name engines, such as {engines}.")
    else:
        variants = _expanded(map(_planned, options.variants), base, options.settings, each)
    lacking: dict[str, list[str]] = {}
    if each:
        variants = [one for one in variants if _has_scripts(one, base, options, lacking)]
    without = [
        f"{title} has no program for {', '.join(dict.fromkeys(of))}"
        for title, of in lacking.items()
    ]
    if not variants:
        raise UsageError(f"{name}: {'; '.join(without)}.")
    kinds = {_kind(variant): variant.label for variant in variants if not variant.has_file}
    same = [variant for variant in variants if variant.has_file and _kind(variant) in kinds]
    variants = [variant for variant in variants if variant not in same]
    _require_different(variants, name)
    left_out = [
        f"{variant.label} is left out: with this workload it has the settings of"
        f" {kinds[_kind(variant)]}"
        for variant in same
    ]
    left_out += without
    return variants, [*chain.from_iterable(variant.remarks for variant in same), *left_out]


def _has_scripts(
    variant: _Variant, base: Mapping[str, str], options: Options, lacking: dict[str, list[str]]
) -> bool:
    """Return whether all engines of a variant have programs for its work, and views that show
    their progress. If one has none, add the work to `lacking`, by the engine's title."""
    settings = _load(variant, {**base, **variant.own, **options.settings})
    workload = find_workload(settings.workload)
    for engine in find_engine(variant.engine).members:
        lacks = engine.script_ending and workload.without_script(engine.script_ending, settings)
        if lacks or (workload.positions and not engine.traced_views(settings)):
            lacking.setdefault(engine.title, []).append(work_of(settings.model_dump()))
            return False
    return True


def _kind(variant: _Variant) -> str:
    """Return a text that is equal for variants that would measure the same."""
    own = variant.planned.model_copy(update={"of": "", "label": "", "settings": {}})
    return f"{variant.engine} {sorted(variant.own.items())} {own.model_dump_json()}"


def _require_different(variants: Sequence[_Variant], name: str) -> None:
    """Check that no variant is there twice.

    Raises:
        UsageError: one is.
    """
    seen: set[str] = set()
    for variant in variants:
        kind = _kind(variant)
        if kind in seen:
            raise UsageError(
                f"{variant.label} is in {name} twice. Its repeats already show how it varies."
            )
        if variant.label in seen:
            raise UsageError(f"{name} has two variants {variant.label}. Give each a label.")
        seen |= {kind, variant.label}


def _planned(text: str) -> PlannedVariant:
    try:
        grammar.parse(text)
    except ValueError as error:
        raise UsageError(f"{error}.") from error
    return PlannedVariant(of=text)


def _matching(variants: Sequence[_Variant], text: str) -> list[_Variant]:
    """Return the variants with this label, of this engine, or that this text stands for."""
    if labelled := [variant for variant in variants if variant.label == text]:
        return labelled
    meant = {str(variant) for variant in grammar.parse(text)} if set("[@") & set(text) else {text}
    return [variant for variant in variants if meant & {variant.engine, variant.text}]


def _expanded(
    planned: Iterable[PlannedVariant],
    base: Mapping[str, str],
    options: Mapping[str, str],
    values: Mapping[str, Sequence[str]],
) -> list[_Variant]:
    """Return the variants that a plan or the command line names, with their settings. `base` are
    settings that these override, `options` those that override them. For `values`, see
    `Plan.each`."""
    variants = []
    for entry in planned:
        named = grammar.parse(entry.of)
        parsed = [one for variant in named for one in grammar.with_each(variant, values)]
        if entry.label and len(parsed) > 1:
            raise UsageError(
                f"{entry.label}: {entry.of} stands for several variants; drop the label."
            )
        for variant in parsed:
            made = _Variant(entry.label or str(variant), variant.engine, entry, {}, str(variant))
            brackets = _in_brackets(variant)
            _take_files(made, variant, {**base, **brackets, **entry.settings, **options})
            own = {**made.of_files, **brackets}
            _require_equal(made.label, own, entry.settings)
            made.own = {**own, **entry.settings}
            variants.append(made)
    return variants


def _in_brackets(variant: grammar.Variant) -> dict[str, str]:
    for member in variant.members:
        if member.engine not in plugins.engine_names():
            names = ", ".join(plugins.engine_names())
            raise UsageError(f"There is no engine {member.engine!r}. Engines: {names}.")
    return dict(chain.from_iterable(member.settings.items() for member in variant.members))


def _take_files(made: _Variant, variant: grammar.Variant, others: Mapping[str, str]) -> None:
    """Add the settings in the files of a variant's engines that hold for its workload."""
    members = [member for member in variant.members if member.file]
    made.has_file = bool(members)
    workload = _load(made, others).workload if members else ""
    for member in members:
        own, skipped = for_workload(read_file(member.engine, member.file), workload)
        _require_equal(made.label, made.of_files, own)
        made.of_files |= own
        made.skipped |= skipped


def _require_equal(label: str, own: Mapping[str, str], others: Mapping[str, str]) -> None:
    """Check that what overrides the settings of a variant does not contradict its label.

    Raises:
        UsageError: it does.
    """
    for name, value in others.items():
        if own.get(name, value) != value:
            raise UsageError(f"{label} has {name}={own[name]} and {name}={value}. Leave one out.")


def _give_settings(
    variants: Sequence[_Variant],
    plan: Plan,
    options: Options,
    given: frozenset[str],
    memory_bytes: int,
) -> list[str]:
    """Set the settings of each variant by precedence: `.env`, plan, environment, variant, option.
    Return remarks on derived settings."""
    remarks: list[str] = []
    heaps: dict[str, str] = {}
    for variant in variants:
        _require_equal(variant.label, variant.own, options.settings)
        own = {**variant.own, **options.settings}
        workload = _load(variant, {**_not_given(plan.settings, plan, given), **own}).workload
        of_plan = _applicable(_not_given(plan.settings, plan, given), workload)
        sized = _heaps(variant.engine, plan.heap_share, memory_bytes)
        sized = {
            name: value for name, value in sized.items() if name not in given and name not in own
        }
        heaps |= sized
        variant.settings = {**sized, **of_plan, **own}
    if heaps:
        share = f"{100 * (plan.heap_share or 0):.0f} % of the machine's memory, or a part of that"
        sizes = ", ".join(f"{name}={value}" for name, value in heaps.items())
        remarks.append(f"Heaps are {share}: {sizes}")
    remarks += _share_partitions(variants, given)
    reads = {_load(variant, variant.settings).reads_per_second for variant in variants} - {0}
    if reads and plan.settings.get(READS, "0") != "0":
        remarks.append(
            f"A client reads the views {' or '.join(map(str, sorted(reads)))} times a second, since"
            " an engine that computes only on reads would do nothing otherwise; --no-reads turns"
            " that off"
        )
    for variant in variants:
        settings = _load(variant, variant.settings)
        _require_effective(variant, settings)
        saturates = any(
            isinstance(p, Saturate | Search) for p in variant.planned.phases or plan.phases
        )
        if (saturates or plan.scout_s) and settings.kafka_retention_bytes < 0:
            kept = int(memory_bytes * KEPT_OF_MEMORY / settings.events_partitions)
            variant.settings[RETENTION] = str(kept)
    return remarks


def _separate_cores(
    variants: Sequence[_Variant], own: Mapping[str, str], given: Collection[str]
) -> list[str]:
    """Give the engine cores of its own, by the settings `own`, in all variants for which the user
    has set no cores."""
    separable = [variant for variant in variants if _is_separable(variant, given)]
    if not separable:
        return []
    if not own:
        return ["This machine has a single core, which engines share with everything else"]
    for variant in separable:
        variant.settings = {**own, **variant.settings}
    engine, rest = map(parse_cores, own.values())
    is_split = any(threads_of_core(number) & rest for number in engine)
    split = ", though they are hardware threads of one core" if is_split else ""
    settings = " ".join(f"{name}={value}" for name, value in own.items())
    return [f"The engine has cores of its own, and everything else the others{split}: {settings}"]


def _is_separable(variant: _Variant, given: Collection[str]) -> bool:
    settings, engine = _load(variant, variant.settings), find_engine(variant.engine)
    names = {name.upper() for name in resources.SETTINGS}
    is_set = names & {*given, *variant.own} or any(getattr(settings, n.lower()) for n in names)
    return not (is_set or settings.runtime == "kubernetes" or engine.runs_elsewhere(settings))


def _require_effective(variant: _Variant, settings: config.Settings) -> None:
    """Check that the settings of a variant are of its engine and its workload.

    Raises:
        UsageError: one is not, so it would have no effect.
    """
    of_others = config.of_other_engines(*variant.engine.split(plugins.JOIN))
    for name in variant.own:
        if name.lower() in of_others:
            raise UsageError(f"{variant.label}: {name} is a setting of another engine.")
        if why := applicability.why_without_effect(name, settings.workload):
            raise UsageError(
                f"{variant.label}: {name} has no effect with the workload {settings.workload}:"
                f" {why}. Choose another workload (--workload) or setting."
            )


def _load(variant: _Variant, settings: Mapping[str, str]) -> config.Settings:
    try:
        return config.load(settings)
    except UsageError as error:
        raise UsageError(f"{variant.label}: {error}") from error


def _not_given(
    settings: Mapping[str, Value], plan: Plan, given: Collection[str]
) -> dict[str, Value]:
    """Return those settings of a plan that the environment does not override."""
    return {
        name: value
        for name, value in settings.items()
        if name not in given or (plan.fixed and not _is_of_place(name))
    }


def _is_of_place(name: str) -> bool:
    return name in OF_PLACE or name.endswith(ENDS_OF_PLACE) or name.startswith("KUBERNETES_")


def _applicable(settings: Mapping[str, str], workload_name: str) -> dict[str, str]:
    """Return the settings without reads and tracer events if the workload has none."""
    workload, left_out = find_workload(workload_name), set[str]()
    if not workload.queries:
        left_out.add(READS)
    if TRACERS.lower() not in workload.rates:
        left_out.add(TRACERS)
    return {name: value for name, value in settings.items() if name not in left_out}


def _heaps(engine: str, share: float | None, memory_bytes: int) -> dict[str, str]:
    """Return the settings for the heap sizes of an engine."""
    if share is None:
        return {}
    heaps = {}
    for member in engine.split(plugins.JOIN):
        for name, part in config.heaps_of_engine(member).items():
            steps = int((memory_bytes >> 20) * share * part) // HEAP_STEP_MIB
            mib = max(1, steps) * HEAP_STEP_MIB
            heaps[name.upper()] = f"{mib}" if name.endswith("_mib") else f"{mib}m"
    return heaps


def _share_partitions(variants: Sequence[_Variant], given: Collection[str]) -> list[str]:
    """If the variants differ in their number of replicas, give all as many partitions as these can
    share equally."""
    replicas = {_load(variant, variant.settings).engine_replicas for variant in variants}
    is_set = PARTITIONS in given or any(PARTITIONS in variant.settings for variant in variants)
    if len(replicas) < 2 or is_set:
        return []
    partitions = shareable(_load(variants[0], variants[0].settings).events_partitions, replicas)
    for variant in variants:
        variant.settings[PARTITIONS] = str(partitions)
    uneven = [str(count) for count in sorted(replicas) if partitions % count]
    if not uneven:
        return [f"{partitions} partitions, shared equally by the replicas"]
    which = f"which {' or '.join(uneven)} replicas can't share equally"
    return [f"{partitions} partitions, {which}; that lowers their capacity"]


def shareable(partitions: int, replicas: Collection[int]) -> int:
    """Return the least number of partitions, at least `partitions`, that can be shared equally
    among each number of replicas. If it is above MOST_PARTITIONS, only ensure that each replica
    gets a partition."""
    step = math.lcm(*replicas)
    even = math.ceil(partitions / step) * step
    return even if even <= MOST_PARTITIONS else max(partitions, *replicas)


def _phases(variant: _Variant, plan: Plan, name: str, options: Options) -> tuple[Phase, ...]:
    """Return the phases of a variant with their loads; windows without a load are left out."""
    numbered: list[tuple[str, Phase]] = []
    planned = variant.planned.phases or plan.phases
    windows = [phase for phase in planned if isinstance(phase, Window)]
    # Given loads replace those of the first window that each repeat has.
    first = next((phase for phase in windows if not phase.once), windows[0] if windows else None)
    for number, phase in enumerate(planned, start=1):
        where = (
            f"{name}: {'' if not variant.planned.phases else variant.label + ': '}phase[{number}]"
        )
        if not isinstance(phase, Window):
            numbered.append((where, phase))
            continue
        given = options.loads or variant.planned.loads
        if given and phase is not first and not phase.once:
            continue  # the first window has all of them
        texts = given if given and phase is first else phase.loads
        loads = tuple(_text(text) for text in texts)
        if len(set(map(_kind_of, loads))) < len(loads):
            raise UsageError(f"{where}.loads has a load twice.")
        if loads:
            numbered.append((where, phase.model_copy(update={"loads": loads})))
    repeats = [numbered]
    if (options.repeats or plan.repeats) > 1:
        later = [
            (f"{where} from repeat 2 on", phase) for where, phase in numbered if not phase.once
        ]
        if not later:
            raise UsageError(f"{name}: all phases are `once`, so that later repeats have none.")
        repeats.append(later)
    for placed in repeats:
        _require_capacity_known(placed, plan)
        _require_phases_possible([phase for _, phase in placed], variant, plan, name)
    return tuple(phase for _, phase in numbered)


def _require_capacity_known(phases: Iterable[tuple[str, Phase]], plan: Plan) -> None:
    """Check that the phases of a repeat, given with their places in the plan, come after what
    they need.

    Raises:
        UsageError: one needs a capacity that is not known yet, or its load is not possible.
    """
    has_capacity = bool(plan.scout_s)
    for where, phase in phases:
        has_capacity = has_capacity or isinstance(phase, Saturate)
        if isinstance(phase, Search) and not has_capacity:
            raise UsageError(f"{where}.search needs `scout`, or `saturate` before it.")
        if isinstance(phase, Window):
            for place, text in enumerate(phase.loads, start=1):
                at = f"{where}.loads[{place}]: {text!r}"
                _require_load_possible(load_of(text), at, phase, plan, has_capacity)


def _require_load_possible(
    load: Load, where: str, phase: Window, plan: Plan, has_capacity: bool
) -> None:
    if load.is_common and not plan.scout_s:
        raise UsageError(f'{where} needs a scout, such as `scout = "60s"`.')
    if load.share and not load.is_common and not has_capacity:
        raise UsageError(
            f'{where} needs a scout, such as `scout = "60s"`, or a phase `saturate` before it.'
        )
    if load.share and load.share > 1:
        raise UsageError(f"{where} is above the capacity, so it would not be offered.")
    if load.profile and not phase.top:
        raise UsageError(f"{where}: a profile needs `top`.")


def _require_phases_possible(
    phases: Sequence[Phase], variant: _Variant, plan: Plan, name: str
) -> None:
    """Check that the phases of a run go together.

    Raises:
        UsageError: they do not.
    """
    if plan.fresh == "load" and len(_alone(phases)) > 1:
        raise UsageError(f'{name}: with `fresh = "load"`, the only phase is one window.')
    for stack in _stacks(phases):
        _require_top_possible(stack, variant, plan, name)
        _require_stack_possible(stack, plan, name)


def _alone(phases: Sequence[Phase]) -> list[Phase]:
    """Return phases without verifications."""
    return [phase for phase in phases if not isinstance(phase, Verify)]


def _require_top_possible(
    phases: Sequence[Phase], variant: _Variant, plan: Plan, name: str
) -> None:
    """Check that on one stack, a window with top is the only one if that is needed."""
    alone = _alone(phases)
    is_alone = len(alone) == 1 and isinstance(alone[0], Window)
    if plan.fresh == "load" and not is_alone and alone:
        raise UsageError(f'{name}: with `fresh = "load"`, the only phase is one window.')
    needs_top = plugins.JOIN in variant.engine or len(alone) < len(phases)
    has_top = any(isinstance(phase, Window) and phase.top for phase in phases)
    if has_top and plan.fresh != "load" and _count_loads(phases) > 1:
        raise UsageError(f'{name}: `top` needs a run of its own for each load: `fresh = "load"`.')
    if needs_top and alone and not (has_top and is_alone):
        what = "`verify`" if len(alone) < len(phases) else f"{variant.label} (on one input)"
        raise UsageError(
            f"{name}: {what} needs a stack of its own with one window with `top`: let the phases"
            ' after it have `fresh = true`, or the plan `fresh = "load"`.'
        )


def _require_stack_possible(phases: Sequence[Phase], plan: Plan, name: str) -> None:
    """Check that windows on one stack have names of their own, and that warm-ups have a rate."""
    texts = [text for phase in phases if isinstance(phase, Window) for text in phase.loads]
    loads = [load_of(text) for text in texts]
    kinds = [type(phase) for phase in phases if isinstance(phase, Saturate | Search)]
    if len(set(map(_kind_of, texts))) < len(texts):
        raise UsageError(f"{name} has a load twice on one stack.")
    if len(set(kinds)) < len(kinds):
        raise UsageError(f"{name} has two phases `saturate` or `search` on one stack.")
    is_known = any(load.share is None or plan.scout_s for load in loads)
    if (
        any(isinstance(phase, WarmUp) and phase.at != "saturation" for phase in phases)
        and not is_known
    ):
        raise UsageError(
            f"{name}: a warm-up at the lowest or highest load needs a load whose rate is known"
            ' before; use at = "saturation".'
        )


def _kind_of(text: str) -> tuple[object, ...]:
    """Return what two equal loads have in common, such as `5k` and `5000`."""
    load = load_of(text)
    return load.per_s, load.share, load.is_common, load.profile


def _count_loads(phases: Sequence[Phase]) -> int:
    return sum(len(phase.loads) for phase in phases if isinstance(phase, Window))


def _text(text: str) -> str:
    try:
        return load_of(text).text
    except ValueError as error:
        raise UsageError(f"{error}.") from error


def _cells(variants: Sequence[_Variant], plan: Plan, repeats: int, seed: int) -> list[Cell]:
    """Return the runs in their order."""
    rng = random.Random(seed)  # noqa: S311
    cells = []
    for repeat in range(1, repeats + 1):
        runs = [(variant, text) for variant in variants for text in _fresh_for(variant, plan)]
        if plan.order == "random":
            runs = rng.sample(runs, len(runs))
        elif plan.order == "rising":
            runs.sort(key=lambda run: rank(run[1] or "0"))
        elif plan.order == "alternating":
            first = list(dict.fromkeys(text for _, text in runs))
            runs.sort(key=lambda run: first.index(run[1]))
        for variant, text in runs:
            cells += _legs(_cell(variant, text, repeat, seed, plan))
    return cells


def _legs(cell: Cell) -> list[Cell]:
    """Return a run as one run for each fresh stack."""
    return [
        cell.model_copy(update={"phases": phases, "leg": leg})
        for leg, phases in enumerate(_stacks(cell.phases), start=1)
    ]


def _stacks(phases: Sequence[Phase]) -> list[tuple[Phase, ...]]:
    """Return the phases on each fresh stack."""
    if not phases:
        return []
    starts = [n for n, phase in enumerate(phases) if n == 0 or phase.fresh]
    ends = [*starts[1:], len(phases)]
    return [tuple(phases[start:end]) for start, end in zip(starts, ends, strict=True)]


def _fresh_for(variant: _Variant, plan: Plan) -> tuple[str | None, ...]:
    """Return the loads of a variant that have a run of their own; None if one run has them all."""
    if plan.fresh == "variant":
        return (None,)
    return next((phase.loads for phase in variant.phases if isinstance(phase, Window)), (None,))


def _cell(variant: _Variant, text: str | None, repeat: int, seed: int, plan: Plan) -> Cell:
    return Cell(
        variant=variant.label,
        engine=variant.engine,
        repeat=repeat,
        settings=variant.settings,
        own=tuple(variant.own),
        phases=tuple(
            _ordered(phase, variant, text, repeat, seed)
            for phase in variant.phases
            if repeat == 1 or not phase.once
        ),
        disturb=variant.planned.disturb,
        start_and_stop_s=plan.start_and_stop_s,
    )


def _ordered(phase: Phase, variant: _Variant, text: str | None, repeat: int, seed: int) -> Phase:
    """Return a phase with the loads of a run, in the run's order."""
    if not isinstance(phase, Window):
        return phase
    if text is not None:
        return phase.model_copy(update={"loads": (text,)})
    if phase.order == "random":
        rng = random.Random(f"{seed} {variant.label} {repeat}")  # noqa: S311
        loads = rng.sample(sorted(phase.loads, key=rank), len(phase.loads))
        return phase.model_copy(update={"loads": tuple(loads)})
    return phase


def rank(text: str) -> tuple[bool, bool, float, str]:
    """Return a key that sorts loads: rates, shares of the slowest, own shares, each rising."""
    load = load_of(text)
    if load.profile:
        per_s: float = load_profile.parse(load.profile).mean_per_s
    else:
        per_s = load.share or load.per_s or 0.0
    return load.share is not None, SLOWEST not in text, per_s, text
