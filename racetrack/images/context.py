"""Build context of a Docker image: files of the repository, installed parts and generated files,
with a digest of everything that determines the image."""

import hashlib
import io
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import IO

NOT_COPIED = ("made", "__pycache__")


class BuildContext:
    """Files of one build context. Their names are relative paths with `/`.

    `counts=False` keeps a file out of the digest: a change of it does not rebuild the image.
    """

    def __init__(self, dockerfile: Path) -> None:
        # Name → content; None means an empty folder.
        self._content: list[tuple[str, Path | bytes | None]] = []
        self._digest = hashlib.sha256()
        self._add("Dockerfile", dockerfile.read_bytes())

    @property
    def digest(self) -> str:
        """16 hexadecimal digits, which change if anything changes that was added with
        `counts=True`."""
        return self._digest.hexdigest()[:16]

    def add_to_digest(self, *words: str) -> None:
        """Add words to the digest that are in no file, such as versions."""
        for word in words:
            self._digest.update(word.encode() + b"\0")

    def text(self, name: str, text: str, *, counts: bool = True) -> None:
        """Add a file with this text."""
        self._add(name, text.encode(), counts=counts)

    def files(
        self, root: Path, names: Iterable[str], under: str = "", *, counts: bool = True
    ) -> None:
        """Add files below `root`. `names` are paths of files, or of folders whose files are all
        added."""
        for name in names:
            path = root / name
            for file in [path] if path.is_file() else sorted(path.rglob("*")):
                inside = file.relative_to(root)
                if file.is_file() and not set(NOT_COPIED) & set(inside.parts):
                    self._add(f"{under}{inside.as_posix()}", file.read_bytes(), counts=counts)

    def folder(self, name: str) -> None:
        """Add a folder that may stay empty, because COPY of a missing folder would fail."""
        self._content.append((name, None))

    def part(self, name: str, folder: Path) -> None:
        """Add an installed part. The name of its folder identifies its content."""
        self.add_to_digest(folder.name)
        self._content.append((name, folder))

    def tar(self) -> IO[bytes]:
        """Return the context as a tar file. All files in it are owned by root, so that the image
        is the same whoever builds it."""
        file = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
        with tarfile.open(fileobj=file, mode="w") as archive:
            for name, content in self._content:
                if isinstance(content, Path):
                    archive.add(content, name, filter=_copied)
                elif content is None:
                    member = tarfile.TarInfo(name)
                    member.type, member.mode = tarfile.DIRTYPE, 0o755
                    archive.addfile(member)
                else:
                    member = tarfile.TarInfo(name)
                    member.size, member.mode = len(content), 0o644
                    archive.addfile(member, io.BytesIO(content))
        file.seek(0)
        return file

    def _add(self, name: str, content: bytes, *, counts: bool = True) -> None:
        self._content.append((name, content))
        if counts:
            self.add_to_digest(name)
            self._digest.update(content + b"\0")


def _copied(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Leave out files that this machine made to speed up its own starts (`NOT_COPIED`), and make
    root the owner of all others."""
    if set(NOT_COPIED) & set(Path(member.name).parts):
        return None
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member
