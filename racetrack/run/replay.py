"""Replay of a live session: reading of its actions."""

import csv
import json
from collections.abc import Mapping
from pathlib import Path

from racetrack.errors import UsageError
from racetrack.live import actions
from racetrack.live.actions import Action, Refused
from racetrack.plugins import JOIN
from racetrack.results.folder import read_run
from racetrack.results.run import RunRecord
from racetrack.run.live import LiveArguments, Scheduled
from racetrack.run.live_record import BY_SESSION, FILE
from racetrack.workloads import load_profile
from racetrack.workloads.contract import workload_of

REPLAY = "replay"


def read_session(folder: Path, engine: str) -> tuple[str, LiveArguments, str]:
    """Return the engine (or group), the arguments and the workload of a replay of a session's
    folder. If `engine` is empty, it is that of the session.

    Raises:
        UsageError: the folder is not that of a session, or the actions do not suit the engine.
    """
    run = read_run(folder)
    if not (run.live and run.arguments):
        raise UsageError(f"{folder} is not the folder of a live session (`./race live`).")
    names = _names(run, engine or run.engine)
    arguments = LiveArguments(
        per_s=run.arguments.pageviews_per_s,
        profile=load_profile.parse(run.arguments.load) if run.arguments.load else None,
        schedule=tuple(_scheduled(folder / FILE, run.live.from_ms, names)),
        replay_of=run.tag,
    )
    if run.live.until_ms is not None:
        ends_s = (run.live.until_ms - run.live.from_ms) / 1000
        end = Scheduled(ends_s, Action("end", {}, REPLAY))
        kept = tuple(each for each in arguments.schedule if each.action.name != "end")
        arguments = LiveArguments(
            arguments.per_s, arguments.profile, (*kept, end), arguments.replay_of
        )
    return engine or run.engine, arguments, workload_of(run.settings)


def _names(run: RunRecord, engine: str) -> Mapping[str, str]:
    """Return the engine in the replay for each engine of the session. One engine may take the place
    of another."""
    before, now = run.engine.split(JOIN), engine.split(JOIN)
    if len(before) == len(now) == 1:
        return {before[0]: now[0]}
    return {name: name for name in now if name in before}


def _scheduled(file: Path, from_ms: int, names: Mapping[str, str]) -> list[Scheduled]:
    """Return the actions of a user. Those of the session itself, such as stopping the load before
    memory runs out, are not repeated.

    Raises:
        UsageError: the file is damaged, or an action is one on an engine that is not replayed.
    """
    found = []
    try:
        with file.open(newline="", encoding="utf-8") as rows:
            for row in csv.DictReader(rows):
                if row["by"] != BY_SESSION:
                    arguments = _renamed(json.loads(row["arguments"]), names)
                    action = actions.parse(row["action"], arguments, REPLAY)
                    found.append(Scheduled((int(row["at_ms"]) - from_ms) / 1000, action))
    except (OSError, ValueError, KeyError, TypeError, Refused) as error:
        raise UsageError(f"{file} can't be replayed: {error}.") from error
    return found


def _renamed(arguments: dict[str, object], names: Mapping[str, str]) -> dict[str, object]:
    target = str(arguments.get("target"))
    return {**arguments, "target": names[target]} if target in names else arguments
