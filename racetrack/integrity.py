"""Finds damaged files in installed parts (components), for example after a power cut.

At the end of its installation, a part gets a list of the hashes of all its files. It is compared
with the files only after a failure, because that takes seconds. A damaged part gets a file DAMAGED;
the next set-up replaces it. Standard library only, because any package may be the damaged one.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# Lines as `sha256sum` prints them. The last line of a file is the valid one.
HASHES = "SHA256SUMS"
DAMAGED = "DAMAGED"
# A process that uses a part keeps a file with this name and its process id in the part's folder.
IN_USE = ".in-use-"
COMPILED, HEADER_BYTES = ".pyc", 16


def is_usable(folder: Path) -> bool:
    """Return whether a part is installed and not known to be damaged."""
    return folder.is_dir() and not (folder / DAMAGED).exists()


def add_hashes(folder: Path, paths: Iterable[Path]) -> None:
    """Append the hashes of files in the part `folder` to its list."""
    lines = [f"{_digest(path)}  {path.relative_to(folder)}\n" for path in paths]
    with (folder / HASHES).open("a") as file:
        file.writelines(lines)


def files_in(folder: Path) -> list[Path]:
    """Return all files in a folder, without links and compiled Python."""
    walked = (Path(where, name) for where, _, names in os.walk(folder) for name in names)
    return sorted(p for p in walked if p.suffix != COMPILED and p.is_file() and not p.is_symlink())


def examine(folder: Path) -> str:
    """Compare a part with its list of hashes. If a file differs, mark the part as damaged, and
    return a message that names the part and the file; otherwise return an empty string."""
    if not (damaged := _damaged(folder)):
        return ""
    more = f" and {len(damaged) - 1} more" if len(damaged) > 1 else ""
    remedy = "The next call installs it again."
    try:
        (folder / DAMAGED).write_text("".join(f"{name}\n" for name in damaged))
    except OSError:
        remedy = f"Remove the folder {folder}; then the next call installs it again."
    return f"The installed part {folder.name} is damaged: {damaged[0]}{more}. {remedy}"


def examine_all(folders: Iterable[Path]) -> str:
    """Examine several parts; return their messages, one per line."""
    return "\n".join(filter(None, map(examine, folders)))


@contextmanager
def in_use(folder: Path) -> Iterator[None]:
    """Leave a file in the part's folder while this process uses it. It remains if a signal kills
    the process: a shared library that lacks its end causes SIGBUS."""
    mark = folder / f"{IN_USE}{os.getpid()}"
    if (folder / HASHES).exists():
        with suppress(OSError):  # the folder may be read-only
            mark.touch()
    try:
        yield
    finally:
        with suppress(OSError):
            mark.unlink()


def was_killed(folder: Path) -> bool:
    """Return whether a process that used the part was killed since the last call."""
    dead = [mark for mark in folder.glob(f"{IN_USE}*") if not _runs(mark.name)]
    for mark in dead:
        with suppress(OSError):
            mark.unlink()
    return bool(dead)


def _runs(mark: str) -> bool:
    try:
        os.kill(int(mark.removeprefix(IN_USE)), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        pass
    return True


def _damaged(folder: Path) -> list[str]:
    """Return the names of the damaged and missing files of a part."""
    if not (folder / HASHES).exists():
        return []  # installed by an earlier version
    text = (folder / HASHES).read_text(errors="replace")
    hashes = {
        name: digest for digest, _, name in (line.partition("  ") for line in text.splitlines())
    }
    compiled = [p for p in folder.rglob(f"*{COMPILED}") if _is_cut_off(p)]
    return [
        *(name or HASHES for name, digest in hashes.items() if _digest(folder / name) != digest),
        *(str(path.relative_to(folder)) for path in compiled),
    ]


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file in hex; an empty string if it can't be read."""
    import hashlib

    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def _is_cut_off(compiled: Path) -> bool:
    """Return whether Python can't load a compiled module. Python itself notices other damage."""
    import marshal
    from importlib.util import MAGIC_NUMBER

    content = compiled.read_bytes()
    if content[:4] != MAGIC_NUMBER or len(content) < HEADER_BYTES:
        return False
    try:
        marshal.loads(content[HEADER_BYTES:])  # noqa: S302  # the import system would load it, too
    except (EOFError, ValueError, TypeError):
        return True
    return False
