"""What is made once of a part and makes every later start faster: kept inside the part's folder.

It goes when the part goes. Whoever may not write there does without.
"""

import contextlib
import os
import shutil
from pathlib import Path

import psutil


def path_in(part: Path, name: str) -> Path:
    """Where a thing of that name is kept, whether it is there or not."""
    return part / "made" / name


def keep(source: Path, target: Path) -> bool:
    """Copy a file or folder to where `path_in` says: whole or not at all. False if there is no way
    to write there; whoever asked does without, only slower."""
    unfinished = target.with_name(f".{os.getpid()}-{target.name}")
    try:
        target.parent.mkdir(exist_ok=True)
        _remove_half_made(target)
        if source.is_dir():
            shutil.copytree(source, unfinished)
        else:
            shutil.copyfile(source, unfinished)
        # A JVM dies of an archive that a power cut has shortened.
        os.sync()
        unfinished.rename(target)
    except OSError:
        _remove(unfinished)
        # Where another run was faster, a folder stands already, and it serves as well.
        return target.exists()
    return True


def _remove_half_made(target: Path) -> None:
    """What runs left that were killed while they copied."""
    for path in target.parent.glob(f".*-{target.name}"):
        pid = path.name[1:].partition("-")[0]
        if pid.isdecimal() and not psutil.pid_exists(int(pid)):
            _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()
