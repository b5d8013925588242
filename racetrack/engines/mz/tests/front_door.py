"""The command line with another script for Materialize: `python -m
racetrack.engines.mz.tests.front_door SCRIPT ARGUMENTS…` is `./run_experiment.sh mz ARGUMENTS…` with
SCRIPT in place of scripts/demo.sql."""

import sys
from pathlib import Path

from racetrack import cli
from racetrack.engines.mz import engine as mz

if __name__ == "__main__":
    script, *arguments = sys.argv[1:]
    mz.ENGINE = mz.Materialize(Path(script))
    sys.argv[1:] = [cli.POSITIONAL_FORM, "mz", *arguments]
    cli.main()
