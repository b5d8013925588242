"""Model of a plan, and reading of its TOML file.

A plan is a closed set of values, without conditions or expressions. Errors name the file, the key
path, counted from 1 (`phase[2].loads[1]`), and what is allowed there.
"""

import math
import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    model_validator,
)

from racetrack import plugins, renamed, units
from racetrack.errors import UsageError
from racetrack.plan import variants
from racetrack.workloads import load_profile

PLANS = plugins.REPO / "plans"
SLOWEST = "of slowest"
START_AND_STOP_S = 40.0
MOST_S = 7 * 86_400.0  # longest duration
# A shorter window has no lag, since the verdict first looks after this time.
LEAST_WINDOW_S = 10.0
_SHARE = re.compile(r"(\d+(?:\.\d+)?) ?%( of slowest)?")


@dataclass(frozen=True)
class Load:
    """A load: a rate in events per second; a share of the engine's own capacity, or of the slowest
    engine's (`is_common`), which a scout measures; or a profile."""

    text: str
    per_s: int | None = None
    share: float | None = None
    is_common: bool = False

    @property
    def profile(self) -> str | None:
        """Text of the profile; None if the load is constant."""
        return self.text if self.per_s is None and self.share is None else None


def load_of(text: str) -> Load:
    """Return the load that a text describes: `5k`, `80%`, `10% of slowest`, or a profile such as
    `spike 5k 50k 10s`.

    Raises:
        ValueError: the text describes none.
    """
    if share := _SHARE.fullmatch(text):
        if not (percent := float(share[1])):
            raise ValueError(f"{text!r}: a share of capacity is above 0 %; an idle load is 0")
        return Load(text, share=percent / 100, is_common=bool(share[2]))
    if " " in text:
        profile = load_profile.parse(text)
        if not profile.duration_s:  # it is constant
            return load_of(str(profile.rate_at(0.0)))
        return Load(str(profile))
    return Load(text, per_s=units.parse_rate(text))


def _load_text(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return load_of(value).text if isinstance(value, str) else value


def _seconds(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("a duration is a text such as '60s'")
    return units.parse_duration_s(value) if isinstance(value, str) else value


def _rate(value: object) -> object:
    return units.parse_rate(value) if isinstance(value, str) else value


def _of_variants(value: object) -> object:
    if isinstance(value, str):
        variants.parse(value)
    return value


def _settings(value: object) -> object:
    if not isinstance(value, dict):
        return value
    _require_names(value)
    texts = {
        name: str(setting).lower() if isinstance(setting, bool) else str(setting)
        for name, setting in value.items()
    }
    try:
        return renamed.in_settings(texts, "in a plan")
    except UsageError as error:
        raise ValueError(str(error)) from None


def _each(value: object) -> object:
    if not isinstance(value, dict):
        return value
    _require_names(value)
    return {renamed.setting(name, "in a plan"): values for name, values in value.items()}


def _require_names(settings: Collection[str]) -> None:
    if wrong := [name for name in settings if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name)]:
        raise ValueError(f"{wrong[0]!r} is not named as in .env")


Seconds = Annotated[float, BeforeValidator(_seconds), Field(ge=0, le=MOST_S)]
Positive = Annotated[float, BeforeValidator(_seconds), Field(gt=0, le=MOST_S)]
LoadText = Annotated[str, BeforeValidator(_load_text)]
RateText = Annotated[int, BeforeValidator(_rate)]
VariantText = Annotated[str, BeforeValidator(_of_variants)]
SettingsByName = Annotated[dict[str, str], BeforeValidator(_settings)]
Values = Annotated[tuple[str, ...], Field(min_length=1)]
ValuesByName = Annotated[dict[str, Values], BeforeValidator(_each)]


class PlanModel(BaseModel):
    """Base of the parts of a plan: rejects unknown keys, and can't be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Top(PlanModel):
    """Samples of top, which cover the window."""

    samples: int = Field(ge=1)
    every_s: Positive = Field(alias="every")


class PhaseModel(PlanModel):
    """Base of phases. With `fresh`, a phase and those after it are on a fresh stack, and may use
    the capacity that the phases before them measured. With `once`, only the first repeat has it."""

    fresh: bool = False
    once: bool = False


class WarmUp(PhaseModel):
    """Warm-up at the lowest or highest load of the run, or saturated, for at most this long.
    Saturation begins with the rate `start`."""

    for_s: Positive = Field(alias="warm_up")
    at: Literal["lowest", "highest", "saturation"]
    start: RateText = Field(default=1_000, ge=1)


class Window(PhaseModel):
    """A window at each of the loads, after settling. With `top`, the window may be extended until
    the verdict is decided, and faults may be injected."""

    for_s: Positive = Field(alias="window")
    settle_s: Seconds = Field(default=0.0, alias="settle")
    loads: tuple[LoadText, ...] = ()
    order: Literal["given", "random"] = "given"
    top: Top | None = None
    decide_within_s: Seconds = Field(default=0.0, alias="decide_within")
    faults: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _samples_cover_it(self) -> "Window":
        if self.top and not math.isclose(self.top.samples * self.top.every_s, self.for_s):
            raise ValueError(
                f"top: {self.top.samples} samples {self.top.every_s:g} s apart do not cover the"
                f" window of {self.for_s:g} s"
            )
        if not self.top and self.for_s < LEAST_WINDOW_S:
            raise ValueError(f"window: lag needs at least {LEAST_WINDOW_S:g} s")
        if (self.decide_within_s or self.faults) and not self.top:
            raise ValueError("decide_within and faults need top")
        return self


class Saturate(PhaseModel):
    """A window at saturation, once the engine has had a backlog for `hold`."""

    for_s: Positive = Field(alias="saturate")
    hold_s: Seconds = Field(default=60.0, alias="hold")
    batch_s: Positive = Field(default=30.0, alias="batch")


class Search(PhaseModel):
    """Search for the highest rates at which the lag stays within bounds, by trials at shares of a
    capacity measured before. No trial begins that would end the run later than `within` after the
    start of its first stack."""

    bounds_s: tuple[Positive, ...] = Field(alias="search", min_length=1)
    trial_s: Seconds = Field(default=90.0, alias="trial", ge=LEAST_WINDOW_S)
    settle_s: Seconds = Field(default=15.0, alias="settle")
    within_s: Positive = Field(default=900.0, alias="within")


class Verify(PhaseModel):
    """Comparison of every view with its sources, at the end of a run."""

    verify: Literal[True]


# Key that tells a kind of phase → kind.
KINDS: Mapping[str, type[PlanModel]] = {
    "warm_up": WarmUp,
    "window": Window,
    "saturate": Saturate,
    "search": Search,
    "verify": Verify,
}


def _kind(value: object) -> str | None:
    if isinstance(value, PlanModel):
        return next(f"<{key}>" for key, kind in KINDS.items() if isinstance(value, kind))
    if not isinstance(value, dict):
        return None
    named = [key for key in KINDS if key in value]
    return f"<{named[0]}>" if named else None


Phase = Annotated[
    Annotated[WarmUp, Tag("<warm_up>")]
    | Annotated[Window, Tag("<window>")]
    | Annotated[Saturate, Tag("<saturate>")]
    | Annotated[Search, Tag("<search>")]
    | Annotated[Verify, Tag("<verify>")],
    Discriminator(
        _kind,
        custom_error_type="phase",
        custom_error_message=f"a phase has one of the keys {', '.join(KINDS)}",
    ),
]


class PlannedVariant(PlanModel):
    """A variant of a plan, with settings, loads and phases of its own, which replace the plan's.

    While its runs measure, another program uses `disturb` cores, so that they are void."""

    of: VariantText
    label: str = ""
    settings: SettingsByName = Field(default_factory=dict)
    loads: tuple[LoadText, ...] = ()
    phases: tuple[Phase, ...] = Field(default=(), alias="phase")
    disturb: float = Field(default=0.0, ge=0)


def _as_variant(value: object) -> object:
    return {"of": value} if isinstance(value, str) else value


class Plan(PlanModel):
    """A plan. Runs are repeated on fresh stacks, one for each variant or for each load."""

    variants: tuple[Annotated[PlannedVariant, BeforeValidator(_as_variant)], ...] = ()
    more_variants: tuple[PlannedVariant, ...] = Field(default=(), alias="variant")
    settings: SettingsByName = Field(default_factory=dict)
    # Settings of which each value makes a variant of its own, unless a variant has its own value.
    each: ValuesByName = Field(default_factory=dict)
    fixed: bool = False
    phases: tuple[Phase, ...] = Field(alias="phase", min_length=1)
    repeats: int = Field(default=1, ge=1)
    order: Literal["random", "alternating", "rising", "given"] = "random"
    fresh: Literal["variant", "load"] = "variant"
    seed: int | None = None
    # Longest time for which a scout saturates a variant; 0: no scout.
    scout_s: Seconds = Field(default=0.0, alias="scout")
    # Length of the windows in which the broker is measured without an engine; 0: it is not.
    input_alone_s: Seconds = Field(default=0.0, alias="input_alone")
    cores: Literal["apart", "shared"] = "apart"
    heap_share: float | None = Field(default=None, gt=0, lt=1)
    baseline: Literal["", "first"] = ""
    reference: str = ""
    note: str = ""
    # Estimated time in which the stack of a run starts and stops.
    start_and_stop_s: Seconds = Field(default=START_AND_STOP_S, alias="start_and_stop")

    @property
    def all_variants(self) -> tuple[PlannedVariant, ...]:
        """The variants of `variants` and of the tables `[[variant]]`."""
        return self.variants + self.more_variants


def find_plan(name: str) -> Path:
    """Return the file of a plan, given its name in `plans/` or its path.

    Raises:
        UsageError: there is no such plan.
    """
    path = Path(name).expanduser()
    if path.suffix == ".toml" or len(path.parts) > 1:
        if not path.is_file():
            raise UsageError(f"There is no file {name}. Name the file of a plan.")
        return path
    if not (file := PLANS / f"{path.name}.toml").is_file():
        names = ", ".join(sorted(file.stem for file in PLANS.glob("*.toml")))
        raise UsageError(
            f"There is no plan {name!r}. Plans: {names}; or name a file, ./{name}.toml."
        )
    return file


def read_plan_file(file: Path) -> Plan:
    """Read a plan.

    Raises:
        UsageError: it can't be read; the message names the file and the key path.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} can't be read: {error}.") from error
    return parse_plan(text, str(file))


def parse_plan(text: str, file: str) -> Plan:
    """Return the plan in a TOML text; errors name `file`.

    Raises:
        UsageError: see `read_plan_file`.
    """
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        end = f"at line {len(text.splitlines())}, the end"  # TOML's parser names no line there
        why = str(error).replace("at end of document", end)
        raise UsageError(f"{file} is not TOML: {why}.") from error
    try:
        return Plan.model_validate(content)
    except ValidationError as error:
        # A misspelled key comes first, since it may be why another is missing.
        first, *_ = sorted(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
        raise UsageError(f"{file}: {_described(first)}") from None


def _described(error: Any) -> str:
    loc = list(error["loc"])
    path = _path(loc)
    match error["type"]:
        case "extra_forbidden":
            return f"{path}: there is no such key. Allowed: {', '.join(_keys_at(loc[:-1]))}."
        case "missing":
            return f"{path} is missing."
        case "value_error":
            return f"{path}: {error['ctx']['error']}."
        case "phase":
            return f"{path}: {error['msg']}."
        case _:
            return f"{path}: {error['input']!r}: {error['msg'].removeprefix('Input ')}."


def _path(loc: Sequence[str | int]) -> str:
    path = ""
    for part in loc:
        if isinstance(part, int):
            path += f"[{part + 1}]"
        elif not part.startswith("<"):
            path += f"{'.' * bool(path)}{part}"
    return path or "the plan"


def _keys_at(loc: Sequence[str | int]) -> list[str]:
    """Return the keys that are allowed in a table of a plan."""
    model: type[PlanModel] = Plan
    for part in loc:
        if part in ("variant", "variants"):
            model = PlannedVariant
        elif part == "top":
            model = Top
        elif isinstance(part, str) and part.startswith("<"):
            model = KINDS[part.strip("<>")]
    return [field.alias or name for name, field in model.model_fields.items()]
