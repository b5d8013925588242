#!/usr/bin/env bash
# Runs Flink's SQL client with the jars in ../lib:
#     sql-client.sh gateway --endpoint HOST:PORT [-f SCRIPT]
set -euo pipefail
part=$(dirname "$(dirname "$(readlink -f "$0")")")
configuration=$(mktemp --directory)  # empty, because the gateway's configuration applies
trap 'rm -r "$configuration"' EXIT
touch "$configuration/config.yaml"
FLINK_CONF_DIR=$configuration java -cp "$part/lib/*" \
    org.apache.flink.table.client.SqlClient "$@" --history "$configuration/history"
