"""What is made once of a part and makes every later start faster: kept inside the part's folder.

It goes when the part goes. Whoever may not write there does without.
"""

import os
import shutil
from pathlib import Path


def made(part: Path, name: str) -> Path:
    """Where a thing of that name is kept, whether it is there or not."""
    return part / "made" / name


def keep(source: Path, target: Path) -> bool:
    """Copy a file or folder to where `made` says: whole or not at all. False if it may not."""
    unfinished = target.with_name(f".{os.getpid()}-{target.name}")
    try:
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, unfinished)
        else:
            shutil.copyfile(source, unfinished)
    except PermissionError:
        return False
    try:
        unfinished.rename(target)
    except OSError:
        # Another run was faster: a folder that is there is never replaced.
        if not target.exists():
            raise
        shutil.rmtree(unfinished)
    return True
