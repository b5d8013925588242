"""`python -m racetrack`: the command line. If packages of the harness are damaged, it reports that
instead of the error that they cause."""

import sys
from pathlib import Path

from racetrack import integrity
from racetrack.errors import SetupError


def main() -> None:
    """Run the command line."""
    environment = Path(sys.prefix)
    try:
        with integrity.in_use(environment):
            from racetrack.cli import main as run_command

            run_command()
    except Exception:
        if damage := integrity.examine(environment):
            print(f"Error: {damage}", file=sys.stderr)
            sys.exit(SetupError.exit_code)
        raise


if __name__ == "__main__":
    main()
