#!/usr/bin/env bash
# Registers connector.json once Kafka Connect answers; harmless if it is registered already. The other
# options come from the environment. healthy.sh checks the result.
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
  echo "register.sh: Connect does not take the connector yet: $answer"
  sleep 0.5
done
echo "register.sh: the connector is registered"
