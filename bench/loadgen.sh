#!/usr/bin/env bash
# Measures the load generator: CPU and speed of one worker flat out, beside Kafka's own
# ProducerPerformance and confluent-kafka, and how punctual it is at three rates. Sets up what is
# missing, and brings up a broker of its own unless KAFKA_BOOTSTRAP names one; --help tells more.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [[ -n ${KAFKA_BOOTSTRAP:-} ]]; then
    exec "${CPYTHON:-python3}" "$here/loadgen_bench.py" "$@"
fi
# shellcheck source=racetrack/install/bootstrap.sh
source "$here/../racetrack/install/bootstrap.sh"
bootstrap
exec "$HARNESS_PYTHON" "$here/with_broker.py" "$@"
