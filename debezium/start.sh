#!/usr/bin/env bash
# The container's entry point: COMMAND… starts Kafka Connect; the connector is registered as soon as it
# answers. Both write to the container's log.
set -euo pipefail
bash "$(dirname "$0")/register.sh" &
exec "$@"
