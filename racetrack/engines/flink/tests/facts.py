"""Facts about Flink's services that the tests of all native services need."""

from tests.service_facts import Facts

FACTS = Facts(
    launched=("flink",),
    files={"flink": ("lib/flink-dist-2.3.0.jar", "lib/flink-sql-connector-kafka-5.0.0-2.2.jar")},
    versions={"flink": "2.3.0", "flink-kafka": "5.0.0-2.2"},
    other_values={
        "FLINK_GATEWAY_URL": "http://flink.example:8083",
        "FLINK_PROPERTIES": "pipeline.object-reuse=true",
        "FLINK_STATE_BACKEND": "rocksdb",
        "FLINK_UPSERT_MATERIALIZE": "NONE",
    },
    changed_from={
        "FLINK_CHECKPOINT_MS": {"FLINK_CHECKPOINT_MS": "5000"},
        "FLINK_PROPERTIES": {"FLINK_PROPERTIES": "execution.buffer-timeout=7ms"},
    },
    jvm_of={"FLINK_HEAP": "flink"},
    image_of={"FLINK_HEAP": ("flink", "flink")},
)
