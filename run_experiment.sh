#!/usr/bin/env bash
# One experiment: ./run_experiment.sh ENGINE RATE WAIT SAMPLES DELAY; sets up what is missing first.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/race" experiment "$@"
