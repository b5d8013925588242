"""Tests of the live heap of a JVM whose live objects are known; other processes are not harmed."""

import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from racetrack.analysis import raw
from racetrack.probes import heap
from racetrack.probes.heap import NoLiveHeap, heap_of, is_jvm, live_bytes
from racetrack.results.folder import RunFolder

pytestmark = pytest.mark.slow

MIB = 1 << 20
LIVE_MIB, GARBAGE_MIB = 96, 300
# The machine may have Java without a compiler, so CLASS is SOURCE compiled by `javac --release 8
# -g:none`.
SOURCE = """
public class Live {
    public static void main(String[] mib) throws Exception {
        byte[][] live = new byte[Integer.parseInt(mib[0])][];
        for (int i = 0; i < live.length; i++) live[i] = new byte[1 << 20];
        for (int i = 0; i < Integer.parseInt(mib[1]); i++) {
            byte[] gone = new byte[1 << 20]; gone[0] = 1;
        }
        System.out.println("ready");
        System.in.read();
        System.out.println(live.length);
    }
}
"""
CLASS = """
yv66vgAAADQANgoAAgADBwAEDAAFAAYBABBqYXZhL2xhbmcvT2JqZWN0AQAGPGluaXQ+AQADKClWCgAIAAkHAAoMAAsA
DAEAEWphdmEvbGFuZy9JbnRlZ2VyAQAIcGFyc2VJbnQBABUoTGphdmEvbGFuZy9TdHJpbmc7KUkHAA4BAAJbQgMAEAAA
CQARABIHABMMABQAFQEAEGphdmEvbGFuZy9TeXN0ZW0BAANvdXQBABVMamF2YS9pby9QcmludFN0cmVhbTsIABcBAAVy
ZWFkeQoAGQAaBwAbDAAcAB0BABNqYXZhL2lvL1ByaW50U3RyZWFtAQAHcHJpbnRsbgEAFShMamF2YS9sYW5nL1N0cmlu
ZzspVgkAEQAfDAAgACEBAAJpbgEAFUxqYXZhL2lvL0lucHV0U3RyZWFtOwoAIwAkBwAlDAAmACcBABNqYXZhL2lvL0lu
cHV0U3RyZWFtAQAEcmVhZAEAAygpSQoAGQApDAAcACoBAAQoSSlWBwAsAQAETGl2ZQEABENvZGUBAARtYWluAQAWKFtM
amF2YS9sYW5nL1N0cmluZzspVgEADVN0YWNrTWFwVGFibGUHADIBAANbW0IBAApFeGNlcHRpb25zBwA1AQATamF2YS9s
YW5nL0V4Y2VwdGlvbgAhACsAAgAAAAAAAgABAAUABgABAC0AAAARAAEAAQAAAAUqtwABsQAAAAAACQAuAC8AAgAtAAAA
dwADAAQAAABSKgMyuAAHvQANTAM9HCu+ogAQKxwSD7wIU4QCAaf/8AM9HCoEMrgAB6IAEhIPvAhOLQMEVIQCAaf/6rIA
EBIWtgAYsgAetgAiV7IAECu+tgAosQAAAAEAMAAAABMABP0ADAcAMQH6ABL8AAEB+gAYADMAAAAEAAEANAAA
"""

Java = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def java(tmp_path: Path) -> Iterator[Java]:
    """Return a function that starts a JVM with options. The JVM keeps LIVE_MIB of objects alive
    until it is stopped."""
    if not shutil.which("java"):
        pytest.skip("there is no Java here")
    (tmp_path / "Live.class").write_bytes(base64.b64decode(CLASS))
    started = []

    def start(*options: str) -> "subprocess.Popen[str]":
        argv = ["java", "-Xmx512m", "-XX:-UsePerfData", *options, "-cp", str(tmp_path), "Live"]
        process = subprocess.Popen(
            [*argv, str(LIVE_MIB), str(GARBAGE_MIB)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("collector", ["Serial", "Parallel", "G1"])
def test_what_is_live_is_reported_and_garbage_is_not(java: Java, collector: str) -> None:
    running = java(f"-XX:+Use{collector}GC")
    assert is_jvm(running.pid)
    before_collection = heap_of(running.pid)
    assert before_collection.limit == pytest.approx(512 * MIB, rel=0.02)
    assert LIVE_MIB * MIB <= before_collection.used <= before_collection.limit
    for _ in range(2):  # the JVM answers again
        assert LIVE_MIB <= live_bytes(running.pid) / MIB < LIVE_MIB + 8
    out, _ = running.communicate("\n")
    assert (out, running.returncode) == (f"{LIVE_MIB}\n", 0)


def test_a_process_that_the_signal_would_end_is_not_sent_it() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        with pytest.raises(NoLiveHeap, match="does not handle SIGQUIT"):
            live_bytes(other.pid)
        assert other.poll() is None
        other.communicate(b"\n")
    assert other.returncode == 0


def test_the_file_has_each_jvm_and_no_other_process(java: Java, tmp_path: Path) -> None:
    folder = RunFolder.create(tmp_path, "steady", "1")
    running, mute = java(), java("-XX:+DisableAttachMechanism")
    services = {"one": [running.pid, os.getpid()], "mute": [mute.pid], "other": [os.getpid()]}
    (message,) = heap.write_live_heaps(services, folder, lambda: None, 0.5)
    assert f"live heap of mute (pid {mute.pid}) is unknown: it did not listen" in message
    heaps = raw.live_heaps(folder.path)
    assert set(heaps) == {"one", "mute"}
    assert heaps["one"] == pytest.approx(LIVE_MIB / 1024, abs=8 / 1024)
    assert heaps["mute"] is None
    assert "did not listen within" in (folder.path / heap.LIVE_HEAP_CSV).read_text()
