"""Command `python3 -m racetrack.install [part…]`: installs parts (components) of the stack."""

import argparse
import signal
import sys
from pathlib import Path

from racetrack.errors import SetupError, UsageError
from racetrack.install import ensure, folder_of, on_request, parts, read_versions


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
    options = parser.parse_args(arguments)
    known = (*parts(), *on_request())
    if unknown := [part for part in options.parts if part not in known]:
        parser.error(f"no such part: {', '.join(unknown)}; the parts are {', '.join(known)}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        versions = read_versions()
        if options.where:
            folder = folder_of(options.where, versions)
            print(folder or "", end="\n" if folder else "")
            return 0 if folder else 1
        prefix = options.prefix.absolute() if options.prefix else None
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


def _say(line: str) -> None:
    print(f"[set-up] {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
