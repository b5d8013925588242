"""`python -m racetrack.cli`."""

from racetrack.cli import main

main()
