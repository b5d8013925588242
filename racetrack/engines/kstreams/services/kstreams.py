"""Service of Kafka Streams: the program `racetrack/engines/kstreams/program`, which maintains the
views."""

from racetrack.engines.shared.java_program.service import TABLES, JavaProgram

SERVICE = JavaProgram(
    "kstreams",
    jar="kafka-streams",
    peers=TABLES,
    keeps_state=True,
    product="kafka-streams",
    ready_within_s=180.0,  # it starts about a hundred tasks with a state store each
)
