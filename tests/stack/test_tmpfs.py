"""Tests of detecting files in memory, on this machine and in containers, by lists of mounts."""

import os
import subprocess
from pathlib import Path

from racetrack.stack import resources

# Mounts as in `/proc/<pid>/mountinfo` of a container. Its own folders in memory are the data, /tmp
# and /dev/shm.
MOUNTS = """\
501 400 0:52 / / rw,relatime master:1 - overlay overlay rw,lowerdir=/l
502 501 0:55 / /proc rw,nosuid - proc proc rw
503 501 0:56 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
504 503 0:57 / /dev/pts rw,nosuid - devpts devpts rw
505 501 0:58 / /sys ro,nosuid - sysfs sysfs ro
506 503 0:54 / /dev/mqueue rw,nosuid - mqueue mqueue rw
507 503 0:59 / /dev/shm rw,nosuid - tmpfs shm rw,size=65536k
508 501 0:60 / /var/lib/mysql rw,nosuid - tmpfs tmpfs rw,size=1048576k
509 501 0:61 / /tmp rw - tmpfs tmpfs rw
510 501 254:0 /etc/hosts /etc/hosts rw,relatime - ext4 /dev/vda rw
511 502 0:62 / /proc/kcore rw,nosuid - tmpfs tmpfs rw
512 505 0:63 / /sys/firmware ro - tmpfs tmpfs ro
"""


def test_a_containers_own_are_found(tmp_path: Path) -> None:
    (tmp_path / "7").mkdir()
    (tmp_path / "7/mountinfo").write_text(MOUNTS)
    root = tmp_path / "7/root"
    assert resources.tmpfs_of(7, tmp_path) == [
        root / "dev/shm",
        root / "var/lib/mysql",
        root / "tmp",
    ]


def test_a_process_that_has_just_ended_sees_none() -> None:
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # leaves it a zombie
        assert resources.tmpfs_of(process.pid) == []
    assert resources.tmpfs_of(process.pid) == []


def test_a_folder_of_this_machine_is_recognized_by_its_device(tmp_path: Path) -> None:
    device = tmp_path.stat().st_dev
    shown = f"{os.major(device)}:{os.minor(device)}"
    (tmp_path / "self").mkdir()
    for kind, is_in_memory in (("tmpfs", True), ("ext4", False)):
        line = f"25 1 {shown} / /somewhere rw - {kind} {kind} rw\n"
        (tmp_path / "self/mountinfo").write_text(line)
        assert resources.is_on_tmpfs(tmp_path, tmp_path) == is_in_memory
