#!/usr/bin/env bash
# Runs one experiment: ./run_experiment.sh ENGINE RATE WAIT SAMPLES DELAY. Installs what is missing.
# `./race run` does the same, with named options.
set -euo pipefail
exec "$(dirname "$(readlink -f "$0")")/race" run_experiment "$@"
