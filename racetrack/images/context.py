"""What a Docker build is given: files of the repository, installed parts, and texts; with a digest
of all that decides what comes out."""

import hashlib
import io
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

NOT_COPIED = ("made", "__pycache__")


class BuildContext:
    """Names in a context are relative, with `/` between folders."""

    def __init__(self, dockerfile: Path) -> None:
        self._content: list[tuple[str, Path | bytes]] = []
        self._digest = hashlib.sha256()
        self._add("Dockerfile", dockerfile.read_bytes())

    @property
    def digest(self) -> str:
        """16 hex of everything added, but for texts that do not count."""
        return self._digest.hexdigest()[:16]

    def decides(self, *words: str) -> None:
        """Count something that the build is not given as a file."""
        for word in words:
            self._digest.update(word.encode() + b"\0")

    def text(self, name: str, text: str, *, counts: bool = True) -> None:
        """Add a file that holds this text."""
        self._add(name, text.encode(), counts=counts)

    def files(
        self, root: Path, names: Iterable[str], under: str = "", *, counts: bool = True
    ) -> None:
        """Add files of the repository, and all in its folders."""
        for name in names:
            path = root / name
            for file in [path] if path.is_file() else sorted(path.rglob("*")):
                inside = file.relative_to(root)
                if file.is_file() and not set(NOT_COPIED) & set(inside.parts):
                    self._add(f"{under}{inside.as_posix()}", file.read_bytes(), counts=counts)

    def part(self, name: str, folder: Path) -> None:
        """Add an installed part. Its folder's name says what is in it."""
        self.decides(folder.name)
        self._content.append((name, folder))

    def tar(self) -> IO[bytes]:
        """All of it, for the Docker engine; root's, so that it is the same for every user."""
        file = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
        with tarfile.open(fileobj=file, mode="w") as archive:
            for name, content in self._content:
                if isinstance(content, Path):
                    archive.add(content, name, filter=_copied)
                else:
                    member = tarfile.TarInfo(name)
                    member.size, member.mode = len(content), 0o644
                    archive.addfile(member, io.BytesIO(content))
        file.seek(0)
        return file

    def _add(self, name: str, content: bytes, *, counts: bool = True) -> None:
        self._content.append((name, content))
        if counts:
            self.decides(name)
            self._digest.update(content + b"\0")


def _copied(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """What was made on this machine to start faster here is left out."""
    if set(NOT_COPIED) & set(Path(member.name).parts):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member
