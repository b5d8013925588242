"""Outcome of a run: `ok`, or why its figures can't be trusted; and the exit code."""

from collections.abc import Iterator, Mapping

from racetrack.analysis import noise
from racetrack.analysis.verdict import RATE_TOLERANCE
from racetrack.results.base import Scalar
from racetrack.results.figures import Results
from racetrack.results.run import Counts, RunArguments, RunRecord, is_void
from racetrack.results.verification import Verified, ViewStatus

VOID_EXIT_CODE = 5


def run_outcome(run: RunRecord, *, slow: str | None = None, ignore_miscounts: bool = False) -> str:
    """Return `ok`, or the first reason why the figures of a finished run can't be trusted. `slow`
    says that the machine was slow, if it was. With `ignore_miscounts`, wrong views and counts after
    a fault are none, since they are figures."""
    if not (run.arguments and run.measured and run.results):
        return "unfinished"
    is_figure = ignore_miscounts and run.faults is not None
    verified = None if is_figure else run.verified
    reasons = (
        # Unfit messages may be the cause of what follows.
        wrong_views(verified) if verified and verified.unfit else None,
        _lost(run.measured),
        _refused(run.measured),
        deleted_unread(run.results.deleted_unread_events, run.settings),
        # At rate 0 the engine has nothing to report.
        _silent(run.results) if run.arguments.events_per_s else None,
        None if is_figure else _overcounted(run.results),
        wrong_views(verified) if verified else None,
        # Noise is checked before the rate: it may be why the rate was missed, and then repeating
        # the run may help.
        noise.why_void(run.results.noise, noise.Gate.of(run.settings), run.machine.cpu_quotas),
        slow,
        rate_missed(run.arguments, run.results),
    )
    return next((reason for reason in reasons if reason), "ok")


def joined(outcomes: Mapping[str, str]) -> str:
    """Return the outcome of a run from the outcomes of its engines, by name: `ok` if all are."""
    if len(outcomes) == 1:
        return next(iter(outcomes.values()))
    bad = [f"{name}: {text}" for name, text in outcomes.items() if text != "ok"]
    return "; ".join(bad) or "ok"


def exit_code(*outcomes: str) -> int:
    """Return the exit code of a command that made one run, given the outcome of each engine."""
    failed = [outcome for outcome in outcomes if outcome != "ok"]
    if not failed:
        return 0
    return VOID_EXIT_CODE if all(map(is_void, failed)) else 1


def _lost(measured: Counts) -> str | None:
    handed, published = measured.handed_over, measured.end_offsets
    if handed == published:
        return None
    differences = [
        f"partition {number}: handed over {given:,}, published {there:,}"
        for number, (given, there) in enumerate(zip(handed, published, strict=True))
        if given != there
    ]
    return "Handed-over and published events differ: " + "; ".join(differences)


def _refused(measured: Counts) -> str | None:
    refused = sum(measured.refused)
    return f"The generator could not publish {refused:,} events" if refused else None


def deleted_unread(count: int, settings: Mapping[str, Scalar]) -> str | None:
    """Return a text on events that the broker deleted before the engine had counted them, and on
    the setting that limits what it keeps; None if there are none."""
    if not count:
        return None
    kept = settings.get("kafka_retention_bytes", -1)
    limit, remedy = f"KAFKA_RETENTION_BYTES={kept} keeps", "Raise it, or set it to -1"
    if settings.get("kafka_bootstrap_servers") or kept == -1:
        limit = "the topic's retention.ms or retention.bytes keeps"
        remedy = "Raise it in the Kafka"
    return (
        f"The broker deleted {count:,} events before the engine had counted them:"
        f" {limit} too little for this load. {remedy}, and run it again"
    )


def rate_missed(arguments: RunArguments, results: Results) -> str | None:
    """Return a text on how far the generator missed the requested rate; None if it did not."""
    achieved = results.achieved_events_per_s
    if achieved is None:
        return "The judged window is too short to measure the rate: take more samples"
    wanted: float = arguments.events_per_s
    if arguments.load:  # the requested rate changes, so use the offered rate
        wanted = results.offered_events_per_s or 0.0
    if achieved >= wanted * (1 - RATE_TOLERANCE):
        return None
    return f"The generator achieved {achieved:,.1f} events/s of the {wanted:,.0f} requested"


def _silent(results: Results) -> str | None:
    """Return the error if the engine made no update, neither in the window nor later. An engine
    with a later update was measured: it is behind."""
    dt_ms, verdict = results.dt_ms, results.verdict
    reported = dt_ms.updates or dt_ms.next_update_s is not None
    judged = verdict.updates or verdict.next_update_s is not None
    if reported and judged:
        return None
    return (
        "The engine reported no update while it was measured, nor while it was given time to"
        " catch up: it has ended or hangs, or its count can no longer be read. Look at its log in"
        " stack/, and run it again"
    )


def _overcounted(results: Results) -> str | None:
    published, processed = results.published_events, results.processed_events
    if processed is None or processed <= published:
        return None
    return (
        f"The engine counted {processed - published:,} of {published:,} events twice: {processed:,}"
    )


def wrong_views(verified: Verified) -> str | None:
    """Return a text on the errors found in the engine's views or its input; None if there are
    none."""
    if errors := list(_errors_in(verified)):
        return "; ".join(errors)
    if len(verified.named(ViewStatus.ABSENT)) == len(verified.views):
        return "No view could be verified: this engine's demo has none of them"
    return None


def _errors_in(verified: Verified) -> Iterator[str]:
    """Yield a text on each kind of error: in views, in CDC topics, in what could not be compared,
    and in messages."""
    if wrong := verified.named(ViewStatus.WRONG, ViewStatus.UNREADABLE):
        late = "" if verified.drained_after_s is not None else ", and the engine had not drained"
        yield f"Views are wrong: {', '.join(wrong)}{late}"
    cdc = verified.cdc
    if cdc and cdc.differing:
        yield (
            f"CDC delivered {cdc.differing_rows:,} rows that differ from MySQL, in"
            f" {', '.join(cdc.differing)}"
        )
    tables = cdc.tables if cdc else {}
    of_cdc = [n for n, table in tables.items() if table.status is ViewStatus.NOT_COMPARED]
    names = [*(f"the topic of {name}" for name in of_cdc), *verified.named(ViewStatus.NOT_COMPARED)]
    if names:
        yield f"Not compared: {', '.join(names)}"
    if verified.unfit:
        of_topics = [f"{name} ({unfit.count:,})" for name, unfit in verified.unfit.items()]
        yield f"Messages are unfit: {', '.join(of_topics)}"
