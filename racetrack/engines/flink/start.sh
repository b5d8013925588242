#!/usr/bin/env bash
# Starts Flink's public image by the image's entry point, which is the argument. Configures Flink by
# the FLINK_* settings, in the same way as racetrack/engines/flink/services/flink.py. The image's
# defaults have one slot and one port for files, which is enough for only one job with parallelism 1,
# because each job starts its own cluster.
set -euo pipefail

properties="sql-gateway.endpoint.rest.address: 0.0.0.0
sql-gateway.endpoint.rest.port: $FLINK_PORT
sql-gateway.session.idle-timeout: 0
execution.target: local
taskmanager.memory.network.min: 256m
taskmanager.memory.network.max: 256m
parallelism.default: $FLINK_PARALLELISM
taskmanager.numberOfTaskSlots: $FLINK_PARALLELISM
blob.server.port: 0
state.backend.type: $FLINK_STATE_BACKEND
table.exec.sink.upsert-materialize: $FLINK_UPSERT_MATERIALIZE"
if [[ $FLINK_MINI_BATCH_MS != 0 ]]; then
    properties+="
table.exec.mini-batch.enabled: true
table.exec.mini-batch.allow-latency: $FLINK_MINI_BATCH_MS ms
table.exec.mini-batch.size: 50000"
fi
if [[ $FLINK_STATE_BACKEND == rocksdb ]]; then
    properties+="
taskmanager.memory.managed.size: $FLINK_HEAP"
fi
if [[ $FLINK_CHECKPOINT_MS != 0 ]]; then
    properties+="
execution.checkpointing.interval: $FLINK_CHECKPOINT_MS ms
execution.checkpointing.storage: filesystem
execution.checkpointing.dir: file:///tmp/checkpoints"
fi
# The image reads lines `name: value` from the same variable.
mapfile -t further < <(xargs -r printf '%s\n' <<< "$FLINK_PROPERTIES")
for property in "${further[@]}"; do
    properties+="
${property%%=*}: ${property#*=}"
done
FLINK_PROPERTIES=$properties exec "$@"
