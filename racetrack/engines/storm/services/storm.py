"""Service of Storm: one process that runs the topology in Storm's local cluster."""

from racetrack.engines.shared.java_program.service import REDIS, JavaProgram

SERVICE = JavaProgram("storm", jar="storm-server", peers=REDIS)
