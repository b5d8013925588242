"""Tests that a run ends before a file system is full, and that this is foreseen if possible."""

from pathlib import Path

import pytest

from racetrack.config import load
from racetrack.results.run import RunArguments
from racetrack.run import checks
from racetrack.run.checks import NoSpace, SpaceWatch
from racetrack.stack.contract import DataFolder
from tests.run.fakes import FakeStack
from tests.run.fluid_session import FakeClock

MIB = 1 << 20


class Disk:
    """Fake file systems: the test sets the free space of each folder."""

    def __init__(self) -> None:
        self.free: dict[str, int] = {}
        self.total = 1100 * MIB

    def measure(self, folder: Path) -> tuple[int, int]:
        return self.free[str(folder)], self.total


@pytest.fixture
def disk() -> Disk:
    return Disk()


def stack_on(data: Path, **settings: str) -> FakeStack:
    stack = FakeStack(load(settings))
    stack.folders = [DataFolder(data, "/dev/shm", "Enlarge it")]
    return stack


def test_data_that_fills_its_room_ends_the_run_with_the_time_that_it_takes(
    tmp_path: Path, disk: Disk
) -> None:
    data, logs, clock = tmp_path / "data", tmp_path, FakeClock()
    disk.free = {str(data): 1000 * MIB, str(logs): 1000 * MIB}
    watch = SpaceWatch(stack_on(data).as_stack(), logs, disk.measure, clock, 0.0)
    watch.check()
    watch.load_changes()
    clock.now_s, disk.free[str(data)] = 20.0, 360 * MIB  # 32 MiB a second
    watch.check()
    clock.now_s, disk.free[str(data)] = 29.5, 56 * MIB
    with pytest.raises(NoSpace) as failed:
        watch.check()
    assert "1.1 GiB in all, this load fills it in 31 s. Enlarge it" in str(failed.value)
    assert failed.value.exit_code == 1


def test_a_full_disk_of_run_folders_ends_the_run_and_reports_what_to_do(
    tmp_path: Path, disk: Disk
) -> None:
    disk.free = {str(tmp_path): 9 * MIB}
    watch = SpaceWatch(FakeStack().as_stack(), tmp_path, disk.measure, every_s=0.0)
    watch.check()
    disk.free[str(tmp_path)] = 7 * MIB
    with pytest.raises(NoSpace, match=r"7 MiB left.* LOGS_FOLDER"):
        watch.check()
    SpaceWatch(stack_on(tmp_path / "gone").as_stack(), tmp_path).check()  # of an ended container


def forecasts(disk: Disk, data: Path, rate: int, samples: int, **settings: str) -> list[str]:
    disk.free = {str(data): 1000 * MIB}
    arguments = RunArguments(events_per_s=rate, wait_s=5, samples=samples, delay_s=1.0)
    stack = stack_on(data, **settings).as_stack()
    return list(checks.space_warnings(stack, arguments, disk.measure))


def test_a_load_that_is_sure_to_fill_the_room_is_foreseen(tmp_path: Path, disk: Disk) -> None:
    (line,) = forecasts(disk, tmp_path, 300_000, 60)
    assert "1000 MiB free: this load fills it in 31 s, and the run takes 65 s" in line

    assert forecasts(disk, tmp_path, 300_000, 20) == []
    assert forecasts(disk, tmp_path, 300_000, 60, KAFKA_RETENTION_BYTES="1000000") == []
    assert "fills it in 62 s" in forecasts(disk, tmp_path, 300_000, 60, BROKER_REPLICAS="2")[0]


def test_the_room_of_other_machines_is_as_they_report_it(tmp_path: Path, disk: Disk) -> None:
    stack, clock = FakeStack(), FakeClock()
    disk.free = {str(tmp_path): 1000 * MIB}

    def report(free_mib: int) -> None:
        space = free_mib * MIB, 4096 * MIB
        name = "/data of the pod redpanda-0"
        stack.folders = [DataFolder(Path("/redpanda-0/data"), name, "Raise it", space)]

    report(1000)
    watch = SpaceWatch(stack.as_stack(), tmp_path, disk.measure, clock, 0.0)
    watch.load_changes()
    clock.now_s += 10
    report(200)  # 80 MiB a second
    with pytest.raises(
        NoSpace, match=r"in /data of the pod redpanda-0: 4\.0 GiB .* fills it in 12 s"
    ):
        watch.check()
