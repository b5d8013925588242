"""Command `python3 -m racetrack.install [part…]`: installs parts (components) of the stack."""

import argparse
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from racetrack import integrity
from racetrack.errors import SetupError, UsageError
from racetrack.install import cache, ensure, examine, folder_of, on_request, parts, read_versions
from racetrack.plugins import REPO


def main(arguments: list[str]) -> int:
    """Install the named parts (by default all); return the exit code."""
    parser = argparse.ArgumentParser(prog="python3 -m racetrack.install", description=__doc__)
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="part",
        help=f"one of {', '.join(parts())} (default: all), or {', '.join(on_request())}",
    )
    parser.add_argument("--prefix", type=Path, help="install into this folder, not into the cache")
    parser.add_argument(
        "--keep-packages",
        action="store_true",
        help="keep unpacked Python packages, so that parts installed next can share them",
    )
    parser.add_argument(
        "--where", metavar="PART", help="print a part's folder; exit code 1 if it is not installed"
    )
    parser.add_argument(
        "--examine",
        action="store_true",
        help="only look for damaged files in the parts that are installed; exit code 3 if there are"
        " any, and the next call installs these parts again",
    )
    options = parser.parse_args(arguments)
    known = (*parts(), *on_request())
    if unknown := [part for part in options.parts if part not in known]:
        parser.error(f"no such part: {', '.join(unknown)}; the parts are {', '.join(known)}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        prefix = options.prefix.absolute() if options.prefix else None
        for folder in filter(None, (REPO, cache.root(), prefix)):
            cache.require_usable(folder)
        versions = read_versions()
        if options.where:
            folder = _where(options.where, versions)
            print(folder or "", end="\n" if folder else "")
            return 0 if folder else 1
        if options.examine:
            damage = examine(options.parts or known, versions)
            print(damage or "No damaged files.")
            return SetupError.exit_code if damage else 0
        wanted = options.parts or parts()
        ensure(wanted, versions, _say, prefix, keep_packages=options.keep_packages)
    except UsageError as error:
        print(f"Error: {error}", file=sys.stderr)
        return error.exit_code
    except SetupError as error:
        print(f"Set-up failed: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("Set-up interrupted; the next call continues it.", file=sys.stderr)
        return 130
    return 0


def _where(part: str, versions: Mapping[str, str]) -> Path | None:
    """Return the folder of a part. If a process that used it was killed, look for damage first."""
    folder = folder_of(part, versions)
    if folder and integrity.was_killed(folder) and (damage := integrity.examine(folder)):
        _say(damage)
        return None
    return folder


def _say(line: str) -> None:
    print(f"[set-up] {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
