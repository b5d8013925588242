#!/usr/bin/env bash
# The container's entry: COMMAND… starts Kafka Connect; the connector is registered as soon as that
# answers, and both speak into the container's log.
set -euo pipefail
bash "$(dirname "$0")/register.sh" &
exec "$@"
