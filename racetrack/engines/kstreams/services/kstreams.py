"""The program in which Kafka Streams keeps the views (see racetrack/engines/kstreams/program)."""

from racetrack.engines.shared.java_program.service import TABLES, JavaProgram

SERVICE = JavaProgram(
    "kstreams",
    jar="kafka-streams",
    peers=TABLES,
    keeps_state=True,
    product="kafka-streams",
    ready_within_s=180.0,  # a hundred tasks with stores of their own
)
