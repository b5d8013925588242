#!/usr/bin/env bash
# All checks, then all tests; sets up what is missing first. Arguments go to pytest.
# With --quick, before a commit: only the tests that take a moment. With --readme, as CI: of those that
# run the real stack only the ones for what the README shows.
set -euo pipefail
shopt -s globstar nullglob
# shellcheck source=racetrack/install/bootstrap.sh
source "$(dirname "$(readlink -f "$0")")/racetrack/install/bootstrap.sh"
APT_PACKAGES+=("$REPO"/{tests,racetrack/engines/*/tests}/apt-packages.txt)
bootstrap
TESTS_PYTHON=$(python_of tests) || exit
cd "$REPO"
"$TESTS_PYTHON" -m ruff check .
"$TESTS_PYTHON" -m ruff format --check .
"$TESTS_PYTHON" -m mypy
"${TESTS_PYTHON%/*}/shellcheck" race .ci/run ./**/*.sh

# Tests run two at a time, and those of one file one after the other: they share what they set up. Of
# those that run the real stack (e2e), some measure it, and need the machine for themselves (alone).
two_at_a_time=(-n 2 --dist loadfile)
briefly=(--durations 20 --durations-min 10 --tb short)
if [[ ${1-} == --quick ]]; then
    shift
    exec "$TESTS_PYTHON" -m pytest "${two_at_a_time[@]}" -m "not e2e and not slow" "$@"
fi
end_to_end=()
if [[ ${1-} == --readme ]]; then
    end_to_end=(tests/e2e/test_{readme,experiment,endings,environment,loadgen,write_check}.py
        racetrack/engines/dh/tests)
elif (($#)); then
    exec "$TESTS_PYTHON" -m pytest "$@"
fi
# A machine with two tests at a time is busier than any that measures, and waits have deadlines; and
# one that others use, too, disturbs what is measured. So what fails is tried once more by itself, and
# both are told.
failed=0
all_of() {
    "$TESTS_PYTHON" -m pytest --cache-clear "${briefly[@]}" "$@" && return
    echo "Those that failed, once more, one at a time:"
    "$TESTS_PYTHON" -m pytest "${briefly[@]}" "$@" --last-failed --last-failed-no-failures none -n 0 --dist no ||
        failed=$?
}
all_of "${two_at_a_time[@]}" -m "not e2e"
# These measure nothing, so Java's quick compiler is enough.
JVM_OPTIONS=-XX:TieredStopAtLevel=1 all_of "${two_at_a_time[@]}" -m "e2e and not alone" "${end_to_end[@]}"
all_of -m "e2e and alone" "${end_to_end[@]}"
exit "$failed"
