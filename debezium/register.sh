#!/usr/bin/env bash
# Registers connector.json as soon as Kafka Connect answers; registering it again is harmless.
# Connect replaces placeholders such as ${env:TABLES} by environment variables. healthy.sh checks
# the result.
set -euo pipefail
here=$(dirname "$0")
connect=http://localhost:8083

until curl --fail --silent --output /dev/null "$connect/connectors"; do
  sleep 0.2
done

put() {
  curl --fail-with-body --silent --show-error --request PUT \
    --header 'Content-Type: application/json' --data "@$here/connector.json" \
    "$connect/connectors/$WORKLOAD/config" 2>&1
}

until answer=$(put); do
  echo "register.sh: Connect does not accept the connector yet: $answer"
  sleep 0.5
done
echo "register.sh: the connector is registered"
