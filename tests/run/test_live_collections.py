"""Tests that long garbage collections become events."""

from pathlib import Path

from racetrack.run.live.figures import CollectionWatch

G1 = "[1764150000123ms][gc] GC({}) Pause Young (Normal) (G1 Evacuation Pause) {}->50M(512M) {}ms\n"
FULL = "[1764150000123ms][gc] GC(9) Pause Full (Allocation Failure) 1010M->900M(1024M) 1250.500ms\n"


def test_only_new_and_long_collections_are_reported(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    log.write_text("a line of the engine\n" + FULL)
    watch = CollectionWatch({"engine": log, "other": tmp_path / "other.log"})
    assert watch.new(0.0) == []
    with log.open("a") as file:
        file.write(G1.format(1, "200M", "12.345") + G1.format(2, "300M", "140.000"))
    ((service, text),) = watch.new(1.0)
    assert service == "engine"
    assert text == (
        "garbage collection stopped engine for 0.14 s"
        " (Young (Normal) (G1 Evacuation Pause), 300M → 50M)"
    )
    assert watch.new(20.0) == []


def test_collections_that_follow_each_other_are_one_event(tmp_path: Path) -> None:
    log = tmp_path / "engine.log"
    watch = CollectionWatch({"engine": log})
    log.write_text(FULL)
    assert len(watch.new(1.0)) == 1
    for second in range(2, 11):
        with log.open("a") as file:
            file.write(G1.format(second, "700M", "100") if second % 2 else FULL)
        assert watch.new(float(second)) == []
    ((_, text),) = watch.new(11.0)
    assert text == (
        "9 garbage collections stopped engine for 6.65 s"
        " (longest: Full (Allocation Failure), 1010M → 900M)"
    )
