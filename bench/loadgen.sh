#!/usr/bin/env bash
# Measures the load generator: CPU and speed of one worker flat out, beside Kafka's own
# ProducerPerformance and confluent-kafka, and how punctual it is at three rates.
# `bench/loadgen.sh --help` tells what it needs.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
exec "${CPYTHON:-python3}" "$here/loadgen_bench.py" "$@"
