"""What a verification found, in words: for the terminal and the page."""

from racetrack.results.base import Scalar
from racetrack.results.run import RunRecord
from racetrack.results.verification import (
    CdcVerified,
    Miscounted,
    Row,
    UnfitMessages,
    Verified,
    ViewFinding,
    ViewStatus,
    WrongRow,
)

SHOWN_ROWS = 3
SHOWN_CHARACTERS = 100


def lines(verified: Verified) -> list[str]:
    """For the terminal: how many views are right, each that is not with its first rows, and how
    long the engine drained."""
    told = [*cdc_lines(verified), f"  views       {in_short(verified)}"]
    for name in verified.named(ViewStatus.WRONG, ViewStatus.UNREADABLE):
        told.append(f"  WRONG       {name}: {how_wrong(verified.views[name])}")
        for found in verified.views[name].first[:SHOWN_ROWS]:
            told += [f"              {line}" for line in side_by_side(found)]
    for name in verified.named(ViewStatus.NOT_COMPARED):
        told.append(f"  NOT COMPARED {name}: {verified.views[name].reason}")
    for topic, unfit in verified.unfit.items():
        told.append(f"  UNFIT       {unfit_in_short(topic, unfit)}")
    if absent := verified.named(ViewStatus.ABSENT):
        told.append(f"              not in this engine's demo: {', '.join(absent)}")
    return [*told, f"  drained     {drained(verified)}"]


def cdc_lines(verified: Verified) -> list[str]:
    """What CDC delivered: one line, and each table that differs with its first rows."""
    if not (cdc := verified.cdc):
        return []
    told = [f"  CDC         {cdc_in_short(cdc)}"]
    for name in cdc.differing:
        told.append(f"  DIFFERS     {name}: {how_wrong(cdc.tables[name])}")
        for found in cdc.tables[name].first[:SHOWN_ROWS]:
            told += [f"              {line}" for line in side_by_side(found, ("MySQL", "topic"))]
    told += [f"              sent no message: {statement}" for statement in cdc.statements]
    return told


def cdc_in_short(cdc: CdcVerified) -> str:
    """`3 of 3 topics equal MySQL: 12,187 rows`, or how many rows differ."""
    tables = cdc.tables
    equal = [name for name, found in tables.items() if found.status is ViewStatus.RIGHT]
    rows = sum(found.compared for found in tables.values())
    text = f"{len(equal)} of {len(tables)} topics equal MySQL: {rows:,} rows"
    if cdc.differing:
        text += f"; CDC delivered {cdc.differing_rows:,} rows that differ"
    for name, found in tables.items():
        if found.status is ViewStatus.NOT_COMPARED:
            text += f"; {name} not compared: {found.reason}"
    return text


def unfit_in_short(topic: str, unfit: UnfitMessages) -> str:
    """How many messages of a topic are none of its events, and where the first are."""
    more = unfit.count - len(unfit.first)
    others = f"; and {more:,} more" if more else ""
    return f"{unfit.count:,} in {topic}, left out: {'; '.join(unfit.first)}{others}"


def in_short(verified: Verified) -> str:
    """`15 of 17 right: …`, or `11 of 12 right (12 of 17 views): …` where the engine's demo does not
    have all."""
    views, sources = verified.views, verified.source_rows
    there = len(views) - len(verified.named(ViewStatus.ABSENT))
    compared = sum(view.compared for view in views.values())
    not_all = f" ({there} of {len(views)} views)" if there < len(views) else ""
    return (
        f"{len(verified.named(ViewStatus.RIGHT))} of {there} right{not_all}: {compared:,} rows"
        " compared with"
        f" {sum(sources.values()):,} of {len(sources)} sources in {verified.took_s:,.1f} s"
    )


def absent(run: RunRecord) -> list[str]:
    """The views that the engine does not have: as it says, or as was found."""
    found = run.verified.named(ViewStatus.ABSENT) if run.verified else []
    return list(dict.fromkeys([*run.absent_views, *found]))


def how_many(run: RunRecord) -> tuple[int, int] | None:
    """How many views the engine has, of how many; None if nobody knows."""
    of = len(run.verified.views) if run.verified else run.workload_views
    return (of - len(absent(run)), of) if of else None


def caveats(run: RunRecord) -> list[str]:
    """One, if the engine does not have all: it has less to do than one that has."""
    missing, there = absent(run), how_many(run)
    if not (missing and there):
        return []
    has = f"{run.engine} has {there[0]} of {there[1]} views, not {', '.join(missing)}"
    return [f"{has}: less to do than an engine that has all."]


def how_wrong(view: ViewFinding) -> str:
    """What is wrong with one view; empty where nothing is."""
    if view.status in (ViewStatus.UNREADABLE, ViewStatus.NOT_COMPARED):
        return f"{view.status}: {view.reason}"
    if view.status is not ViewStatus.WRONG:
        return ""
    counts = ((view.missing, "missing"), (view.extra, "extra"), (view.different, "different"))
    rows = ", ".join(f"{count:,} {kind}" for count, kind in counts if count)
    return f"{rows}; {_miscounted(view.miscounted)}" if view.miscounted else rows


def _miscounted(found: Miscounted) -> str:
    """`90 of 26,486 events counted twice`."""
    lost = "not counted yet" if found.still_counting else "lost"
    kinds = ((found.twice, "counted twice"), (found.lost, lost))
    (count, kind), *more = ((count, kind) for count, kind in kinds if count)
    others = "".join(f", {count:,} {kind}" for count, kind in more)
    return f"{count:,} of {found.events:,} events {kind}{others}"


def drained(verified: Verified) -> str:
    """How long after the pause the engine was seen to have all of the sources."""
    after_s = verified.drained_after_s
    if after_s is None:
        return f"not within {verified.drain_within_s:.0f} s of the pause"
    return f"{after_s:,.1f} s after the pause"


def side_by_side(found: WrongRow, sides: tuple[str, str] = ("source", "engine")) -> list[str]:
    """A row that is not right: one line of what the sources say, one of what the engine has."""
    return [
        f"{found.finding:<9} {sides[0]:<7} {_row(found.source)}",
        f"{'':<9} {sides[1]:<7} {_row(found.engine)}",
    ]


def shown(value: Scalar) -> Scalar:
    """A value for the screen or the page: no line breaks, and text is cut."""
    if not isinstance(value, str):
        return value
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def _row(row: Row | None) -> str:
    if not row:
        return "no such row"
    return ", ".join(f"{name}={shown(value)}" for name, value in row.items())
