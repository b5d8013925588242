"""Program in the harness's image: checks that the image contains the same files as the checkout
that started the Job. Its only argument is a digest of the checkout's files.
"""

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

from racetrack.images import IMAGES
from racetrack.images.context import NOT_COPIED
from racetrack.plugins import REPO

# The image's copy of this file is not used: a Job gets the file from the checkout.
NOT_COMPARED = (".env",)


def digest(root: Path = REPO) -> str:
    """Return a digest of the files in this checkout that are in the image of the harness."""
    sha256 = hashlib.sha256()
    for file in _files(root):
        sha256.update(
            file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes() + b"\0"
        )
    return sha256.hexdigest()


def _files(root: Path) -> Iterator[Path]:
    for name in IMAGES["harness"].files:
        for file in sorted((root / name).rglob("*")) if name not in NOT_COMPARED else ():
            if file.is_file() and not set(NOT_COPIED) & set(file.relative_to(root).parts):
                yield file


def main(expected: str = "") -> int:
    """Return 0 if the files here have the expected digest, or none is expected; otherwise 3."""
    if expected in ("", digest()):
        return 0
    print(
        "The image of the harness has other files than the checkout that started this Job. Call"
        " `./race images` there, and push or load the image `harness` again.",
        file=sys.stderr,
    )
    return 3


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
