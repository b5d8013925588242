"""What an engine worked in short, and what may have moved it: how fast the cores were, and for how
long it stood still to collect garbage."""

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

from racetrack.analysis import pauses
from racetrack.analysis.capacity import Work
from racetrack.analysis.noise import core_speed
from racetrack.analysis.raw import NoiseRow
from racetrack.limit_record import Moment


def moments(
    work: Work, noise: Sequence[NoiseRow], engine_logs: Iterable[Path]
) -> tuple[Moment, ...]:
    """Each moment of such work, with what the rows of `noise.csv` and the engine's logs say."""
    speeds = [core_speed(noise, *edges_ms) for edges_ms in itertools.pairwise(work.edges_ms)]
    paused = pauses.shares(engine_logs, work.edges_ms) or (None,) * len(speeds)
    return tuple(
        Moment(
            from_ms=from_ms,
            until_ms=until_ms,
            per_s=per_s,
            core_mib_per_s=speed.mib_per_s if speed else None,
            paused_share=share,
        )
        for per_s, speed, share, (from_ms, until_ms) in zip(
            work.moments_per_s, speeds, paused, itertools.pairwise(work.edges_ms), strict=True
        )
    )
