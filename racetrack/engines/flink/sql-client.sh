#!/usr/bin/env bash
# Flink's SQL client on the jars beside it: sql-client.sh gateway --endpoint HOST:PORT [-f SCRIPT]
set -euo pipefail
part=$(dirname "$(dirname "$(readlink -f "$0")")")
configuration=$(mktemp --directory)  # an empty one: what counts is the gateway's
trap 'rm -r "$configuration"' EXIT
touch "$configuration/config.yaml"
FLINK_CONF_DIR=$configuration java -cp "$part/lib/*" \
    org.apache.flink.table.client.SqlClient "$@" --history "$configuration/history"
