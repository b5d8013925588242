#!/usr/bin/env bash
# All checks, then all tests (arguments go to pytest); sets up what is missing first.
# With --quick, before a commit: only the tests that take a moment.
set -euo pipefail
shopt -s globstar nullglob
# shellcheck source=racetrack/install/bootstrap.sh
source "$(dirname "$(readlink -f "$0")")/racetrack/install/bootstrap.sh"
APT_PACKAGES+=("$REPO/tests/apt-packages.txt")
bootstrap
cd "$REPO"
if [[ ${1-} == --quick ]]; then
    shift
    set -- -m "not e2e and not slow" "$@"
fi
"$HARNESS_PYTHON" -m ruff check .
"$HARNESS_PYTHON" -m ruff format --check .
"$HARNESS_PYTHON" -m mypy
"${HARNESS_PYTHON%/*}/shellcheck" race .ci/run ./**/*.sh
exec "$HARNESS_PYTHON" -m pytest "$@"
