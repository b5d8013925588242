#!/usr/bin/env bash
# Usage: ./run_tests.sh [--quick | --readme] [PYTEST ARGUMENT...]
#
# Runs all checks, then all tests. Installs what is missing first. Passes other arguments to pytest.
#   --quick    run only fast tests, while the checks run, for use before a commit
#   --readme   of the tests that run the real stack, run only those that cover the README and the
#              live page, as in CI
#   --help     show this text
set -euo pipefail
if [[ ${1-} == --help || ${1-} == -h ]]; then
    sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
    exit
fi
shopt -s globstar nullglob
# shellcheck source=racetrack/install/bootstrap.sh
source "$(dirname "$(readlink -f "$0")")/racetrack/install/bootstrap.sh"
APT_PACKAGES+=("$REPO"/{tests,racetrack/engines/*/tests}/apt-packages.txt)
# Tests start hundreds of Python processes, each of which would compile the harness again.
unset PYTHONDONTWRITEBYTECODE
bootstrap
TESTS_PYTHON=$(python_of tests) || exit
cd "$REPO"
checks() {
    "$TESTS_PYTHON" -m ruff check .
    "$TESTS_PYTHON" -m ruff format --check .
    "$TESTS_PYTHON" -m mypy
    # The generator runs on Python 3.9; this is the oldest that mypy knows.
    "$TESTS_PYTHON" -m mypy --python-version 3.10 loadgen bench/worker_driver.py racetrack/workloads/*/load
    # Scripts for Deephaven, beside the packages that its server has.
    deephaven=$(python_of deephaven) || exit
    "$TESTS_PYTHON" -m mypy --cache-dir .mypy_cache/deephaven --python-executable "$deephaven" scripts/*.py
    "${TESTS_PYTHON%/*}/shellcheck" race .ci/run ./**/*.sh
    web=$(python_of web) || exit
    ln -sfn "${web%/bin/*}/node_modules" node_modules  # editors look here, too
    "${web%/*}/node" node_modules/@biomejs/biome/bin/biome check
    "${web%/*}/node" node_modules/typescript/bin/tsc
    # The formatter leaves long comments and texts as they are.
    if grep -nPx '.{101,}' racetrack/*/page/*.{js,css,ts}; then
        echo "These lines are longer than 100 characters." >&2
        exit 1
    fi
}

# Two tests run at a time. Tests in one file run one after the other because they share fixtures. Of
# the tests that run the real stack (e2e), those that measure it need the machine for themselves
# (alone).
two_at_a_time=(-n 2 --dist loadfile)
briefly=(--durations 20 --durations-min 10 --tb short)
if [[ ${1-} == --quick ]]; then
    shift
    # The checks run meanwhile; what they print comes last.
    printed=$(mktemp)
    checks &>"$printed" &
    checking=$!
    trap 'kill "$checking" 2>/dev/null || true; rm -f "$printed"' EXIT
    failed=0
    "$TESTS_PYTHON" -m pytest "${two_at_a_time[@]}" -m "not e2e and not slow" "$@" || failed=$?
    wait "$checking" || failed=$?
    cat "$printed"
    exit "$failed"
fi
checks
end_to_end=()
if [[ ${1-} == --readme ]]; then
    end_to_end=(tests/e2e/test_{bench,readme,experiment,endings,environment,live,loadgen,plans,write_check}.py
        racetrack/engines/dh/tests)
elif (($#)); then
    exec "$TESTS_PYTHON" -m pytest "$@"
fi
# Two tests at a time keep the machine so busy that a test may miss its deadline, and other users of
# the machine may disturb a measurement. So failed tests run once more, one at a time; both results
# are shown, and the second counts.
failed=0
all_of() {
    "$TESTS_PYTHON" -m pytest --cache-clear "${briefly[@]}" "$@" && return
    echo "Running the failed tests once more, one at a time:"
    "$TESTS_PYTHON" -m pytest "${briefly[@]}" "$@" --last-failed --last-failed-no-failures none -n 0 --dist no ||
        failed=$?
}
all_of "${two_at_a_time[@]}" -m "not e2e"
# These tests measure nothing, so Java's fast compiler (C1) is enough.
JVM_OPTIONS=-XX:TieredStopAtLevel=1 all_of "${two_at_a_time[@]}" -m "e2e and not alone" "${end_to_end[@]}"
all_of -m "e2e and alone" "${end_to_end[@]}"
exit "$failed"
