#!/usr/bin/env bash
# Entry point of Debezium's container: start.sh COMMAND… runs COMMAND, which starts Kafka Connect,
# and registers the connector as soon as Connect answers. Both write to the container's log.
set -euo pipefail
bash "$(dirname "$0")/register.sh" &
exec "$@"
