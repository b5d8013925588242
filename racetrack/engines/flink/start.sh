#!/usr/bin/env bash
# Start the published image by its own entrypoint, which is the argument, with Flink configured by the
# settings of .env as racetrack/engines/flink/services/flink.py does it. The image has one slot and one port for
# files, which is enough for one job without parallelism: each job starts a cluster of its own.
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
FLINK_PROPERTIES=$properties exec "$@"
