#!/usr/bin/env bash
# Exits with 0 if changes of all TABLES are captured: the connector's task runs, and the registry
# has each table's schema. Otherwise prints what is missing.
set -euo pipefail

status=$(curl --fail --silent "http://localhost:8083/connectors/$WORKLOAD/status") || {
  echo "the connector is not registered yet"
  exit 1
}
if [[ $status != *'"tasks":[{"id":0,"state":"RUNNING"'* ]]; then
  echo "the connector's task does not run: $status"
  exit 1
fi

subjects=$(curl --fail --silent "$SCHEMA_REGISTRY_URL/subjects") || {
  echo "the schema registry does not answer at $SCHEMA_REGISTRY_URL"
  exit 1
}
for table in ${TABLES//,/ }; do
  if [[ $subjects != *"\"mysql.$table-value\""* ]]; then
    echo "the schema of $table is not registered yet"
    exit 1
  fi
done
