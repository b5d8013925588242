"""Pauses for garbage are read from what a JVM logs, and told by batch."""

import shutil
import subprocess
from pathlib import Path

import pytest

from racetrack.analysis import pauses
from racetrack.clock import now_ms
from racetrack.settings import REPO
from racetrack.stack.native.jvm import TELLS_OF_PAUSES

LOG = """\
[1000ms][gc] Using Parallel
[9500ms][gc] GC(0) Pause Young (Allocation Failure) 7149M->3568M(12092M) 500.000ms
2026-11-25T01:19:28.271Z INFO: something else, paused for 9.0ms
[21000ms][gc] GC(1) Pause Full (Ergonomics) 8256M->3009M(12094M) 10000.000ms
[29000ms][gc] GC(2) Pause Young (Prepare Mixed) (G1 Evacuation Pause) 9M->8M(9M) 80.000ms
[30000ms][gc] GC(2) Concurrent Mark Cycle 9337.772ms
[31000ms][gc] GC(2) Pause Remark 10875M->10707M(12288M) 20.000ms
"""


def test_a_pause_is_of_the_batches_that_it_was_in(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_text(LOG)
    shares = pauses.shares([log], [0, 10_000, 20_000, 30_000, 40_000])
    assert shares == pytest.approx((0.05, 0.9, 0.108, 0.002))


def test_of_several_jvms_the_one_that_stood_still_most_counts(tmp_path: Path) -> None:
    busy, quiet, other = (tmp_path / f"{name}.log" for name in ("busy", "quiet", "other"))
    busy.write_text(LOG)
    quiet.write_text("[9500ms][gc] GC(0) Pause Young (Normal) 2M->1M(9M) 1.000ms\n")
    other.write_text("no JVM\n")
    edges_ms = [0, 10_000, 20_000]
    assert pauses.shares([quiet, busy, other], edges_ms) == pauses.shares([busy], edges_ms)
    assert pauses.shares([other], edges_ms) == pauses.shares([], edges_ms) == ()


@pytest.mark.parametrize("collector", ["Serial", "Parallel"])
def test_a_real_jvm_is_understood(collector: str) -> None:
    """With so little memory for what is new, even this makes garbage enough."""
    if not shutil.which("java"):
        pytest.skip("there is no Java here")
    began_ms = now_ms()
    argv = ["java", f"-XX:+Use{collector}GC", "-Xmx24m", "-Xmn1m", TELLS_OF_PAUSES]
    said = subprocess.run(
        [*argv, "-Xshare:off", "--list-modules"], check=True, capture_output=True, text=True
    ).stdout
    found = pauses.told(said)
    assert found
    assert len(found) == said.count("] GC(")
    for start_ms, end_ms in found:
        assert began_ms <= start_ms + 1 and start_ms < end_ms <= now_ms()


def test_every_engine_in_a_jvm_with_a_compose_file_of_its_own_logs_its_pauses() -> None:
    told = [path.read_text() for path in REPO.glob("racetrack/engines/*/compose.yml")]
    of_java = [text for text in told if "-XX:+ExitOnOutOfMemoryError" in text]
    assert len(of_java) > 4
    assert all(f" {TELLS_OF_PAUSES}\n" in text for text in of_java)


def test_every_engine_in_a_jvm_logs_its_pauses_natively() -> None:
    services = [
        *REPO.glob("racetrack/engines/*/services/*.py"),
        *REPO.glob("racetrack/engines/shared/**/service.py"),
    ]
    of_java = [text for path in services if "jvm." in (text := path.read_text())]
    assert len(of_java) > 2
    assert all("jvm.TELLS_OF_PAUSES" in text for text in of_java)
