"""Facts about Spark's services that the tests of all native services need."""

from tests.service_facts import Facts

FACTS = Facts(
    launched=("spark",),
    files={"spark": ("lib/spark-sql_2.13-4.2.0.jar",)},
    versions={"spark": "4.2.0"},
    other_values={
        "SPARK_MASTER_URL": "spark://spark.example:7077",
        "SPARK_SHARED_FOLDER": "/shared",
        "SPARK_AFTER_A_KILL": "anew",
        "SPARK_PROPERTIES": "spark.io.compression.codec=zstd",
    },
    jvm_of={"SPARK_HEAP": "spark"},
    image_of={"SPARK_HEAP": ("spark", "eclipse-temurin")},
)
