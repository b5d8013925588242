#!/usr/bin/env bash
# Runs one experiment: ./run_experiment.sh ENGINE RATE WAIT SAMPLES DELAY. Installs what is missing.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/race" experiment "$@"
