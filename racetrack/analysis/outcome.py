"""Did the experiment run as asked: do its figures say anything about the engine at all?"""

from collections.abc import Mapping
from typing import Any

RATE_TOLERANCE = 0.01


def of(run: Mapping[str, Any]) -> str:
    """`ok`, or the first reason why the figures of a finished `run.json` can't be trusted."""
    reasons = (
        *(_lost(run), _refused(run), rate_missed(run), _silent(run), _overcounted(run)),
        *([wrong_views(run["verified"])] if "verified" in run else []),
    )
    return next((reason for reason in reasons if reason), "ok")


def _lost(run: Mapping[str, Any]) -> str | None:
    handed, published = run["measured"]["handed_over"], run["measured"]["end_offsets"]
    if handed == published:
        return None
    differences = [
        f"partition {number}: handed over {given:,}, published {there:,}"
        for number, (given, there) in enumerate(zip(handed, published, strict=True))
        if given != there
    ]
    return "What the generator handed over is not what was published: " + "; ".join(differences)


def _refused(run: Mapping[str, Any]) -> str | None:
    refused = sum(run["measured"]["refused"])
    return f"The generator could not publish {refused:,} pageviews" if refused else None


def rate_missed(run: Mapping[str, Any]) -> str | None:
    """How far the generator was from the rate that was asked for, if it was."""
    asked = run["asked"]["pageviews_per_s"]
    achieved = run["results"]["achieved_pageviews_per_s"]
    if achieved is None:
        return "The sampling window is too short to measure the rate: take more samples"
    if achieved >= asked * (1 - RATE_TOLERANCE):
        return None
    return f"The generator achieved {achieved:,.1f} pageviews/s of the {asked:,} asked for"


def _silent(run: Mapping[str, Any]) -> str | None:
    """One that tells on later is behind, and that is a result. One that never does may as well
    have counted all, and only what is read of it be broken: that can't be told from outside."""
    told = run["results"]["dt_ms"], run["results"]["verdict"]
    if all(of["updates"] or of["next_update_s"] is not None for of in told):
        return None
    return (
        "The engine told of no update while samples were taken, nor while it was given time to"
        " catch up: it has ended or hangs, or what it counts can't be read any more. Look at its"
        " log in stack/, and run it again"
    )


def _overcounted(run: Mapping[str, Any]) -> str | None:
    published = run["results"]["published_pageviews"]
    processed = run["results"]["processed_pageviews"]
    if processed <= published:
        return None
    return f"The engine counted {processed:,} pageviews, though only {published:,} were published"


def wrong_views(verified: Mapping[str, Any]) -> str | None:
    """What is wrong with the views of an engine, by what `run.json` holds under `verified`."""
    views = verified["views"]
    wrong = [name for name, view in views.items() if view["status"] in {"wrong", "unreadable"}]
    if wrong:
        late = "" if verified["drained_after_s"] is not None else ", and the engine had not drained"
        return f"Views are wrong: {', '.join(wrong)}{late}"
    if all(view["status"] == "absent" for view in views.values()):
        return "No view could be verified: this engine's demo has none of them"
    return None
