#!/usr/bin/env bash
# Measures the load generator: CPU time and throughput of one worker at full speed, compared with
# Kafka's ProducerPerformance and confluent-kafka, and lateness at three rates. Installs what is
# missing, and starts a broker unless KAFKA_BOOTSTRAP names one. See --help.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [[ -n ${KAFKA_BOOTSTRAP:-} ]]; then
    exec "${CPYTHON:-python3}" "$here/loadgen_bench.py" "$@"
fi
# shellcheck source=racetrack/install/bootstrap.sh
source "$here/../racetrack/install/bootstrap.sh"
bootstrap
exec "$HARNESS_PYTHON" "$here/with_broker.py" "$@"
