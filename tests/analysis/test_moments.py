"""What an engine worked in short stands beside what may have moved it."""

from pathlib import Path

from racetrack.analysis import raw
from racetrack.analysis.capacity import Work
from racetrack.analysis.moments import moments
from racetrack.probes.noise import COLUMNS

START_MS = 1_790_000_000_000
WORK = Work(
    batches_per_s=(80.0,),
    youngest_s=9,
    oldest_s=21,
    idle_share=0,
    edges_ms=(START_MS, START_MS + 10_000, START_MS + 20_000),
    moments_per_s=(100.0, 60.0),
)


def folder_with(tmp_path: Path, speeds: tuple[float, float]) -> Path:
    """Ten seconds of each."""
    lines = [",".join(COLUMNS)]
    for s in range(1, 21):
        speed = speeds[0] if s < 11 else speeds[1]
        lines.append(f"{START_MS + 1000 * s - 500},{2 * s},0,0,,0,0,0.5,,,,,{speed}")
    (tmp_path / "noise.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_each_has_its_speed_and_its_pauses(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_text(
        f"[{START_MS + 14_000}ms][gc] GC(1) Pause Full (Ergonomics) 8M->3M(9M) 5000.0ms\n"
    )
    first, second = moments(WORK, raw.noise(folder_with(tmp_path, (800.0, 600.0))), [log])
    assert (first.per_s, first.core_mib_per_s, first.paused_share) == (100.0, 800.0, 0.1)
    assert (second.per_s, second.core_mib_per_s, second.paused_share) == (60.0, 600.0, 0.4)
    assert first.until_ms == second.from_ms == START_MS + 10_000


def test_what_logs_no_pauses_has_none_and_what_nobody_looked_at_no_speed(tmp_path: Path) -> None:
    (tmp_path / "noise.csv").write_text(",".join(COLUMNS) + "\n")
    assert {
        (one.core_mib_per_s, one.paused_share) for one in moments(WORK, raw.noise(tmp_path), [])
    } == {(None, None)}
