"""Storm's local cluster, one process, with the topology in it."""

from racetrack.engines.shared.java_program.service import REDIS, JavaProgram

SERVICE = JavaProgram("storm", jar="storm-server", peers=REDIS)
