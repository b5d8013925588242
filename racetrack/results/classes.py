"""Classes of engines: properties of an engine with its settings that make figures differ for other
reasons than speed. A ranking says when it compares engines of different classes."""

from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import ConfigDict, Field

from racetrack.results.base import StrictModel

WORK, AFTER_A_KILL = "work", "after_a_kill"
MISSING = "missing"  # the class that also depends on the run: how many views there are
ALL_VIEWS = "all views"
EARLY = "as events arrive"


AfterAKill = Literal[
    "resumes",
    "resumes, counts some events twice",
    "resumes, loses some events",
    "resumes, leaves some rows wrong",
    "reads all input again",
    "",
]


class Classes(StrictModel):
    """Classes of an engine with its settings. An empty value is unknown."""

    model_config = ConfigDict(frozen=True)

    results: Literal["served", "published to Kafka", "published to Redis", ""] = Field(
        default="",
        description="Where results live: `served` to clients by the engine, or `published` to"
        " another system, where clients read them.",
    )
    after_a_kill: AfterAKill = Field(
        default="", description="What a killed engine does once it is restarted."
    )
    work: Literal["as events arrive", "partly when read", "when read", ""] = Field(
        default="",
        description="When the views are computed. Only engines that compute all of them `as events"
        " arrive` are ranked.",
    )
    views: Literal["declarative", "programmed", ""] = Field(
        default="",
        description="How views are written: `declarative` as queries or table operations that the"
        " engine maintains; `programmed` with code that keeps state of its own.",
    )
    changes: Literal["follows changes", "ignores changes", ""] = Field(
        default="",
        description="Whether views follow when rows change that were joined before, such as an ad"
        " that moves to another campaign.",
    )


KEYS = tuple(Classes.model_fields)
# Titles of the classes, in the order of `Classes`, and of the views that are missing.
TITLES = {
    "results": "where results live",
    AFTER_A_KILL: "after a kill",
    WORK: "when views are computed",
    "views": "how views are written",
    "changes": "changed rows",
    MISSING: "number of views",
}
ClassesOfRun = Mapping[str, str]  # the known classes of an engine in a run, by the keys of TITLES


def classes_of_run(
    classes: Mapping[str, str | None], views: int | None, of_workload: int | None
) -> dict[str, str]:
    """Return those classes of an engine that are known, with its number of views of the
    workload's."""
    known = {key: value for key in KEYS if (value := classes.get(key))}
    if views is not None and of_workload:
        is_whole = views == of_workload
        known[MISSING] = ALL_VIEWS if is_whole else f"{views} of {of_workload} views"
    return known


def differing(classes: Iterable[ClassesOfRun]) -> tuple[str, ...]:
    """Return the keys of the classes in which engines differ, as far as they are known."""
    listed = list(classes)
    return tuple(
        key for key in TITLES if len({classes[key] for classes in listed if key in classes}) > 1
    )


def ranked(classes: Mapping[str, ClassesOfRun]) -> tuple[str, ...]:
    """Return the names that are ranked: those that compute all views as events arrive. Whoever
    leaves work to the readers can't be compared with them; if all do, all are ranked."""
    early = tuple(name for name, own in classes.items() if own.get(WORK, EARLY) == EARLY)
    return early or tuple(classes)
