"""Service of Apex: one process that runs the application in Apex's local mode."""

from racetrack.engines.shared.java_program.service import REDIS, JavaProgram

SERVICE = JavaProgram("apex", jar="apex-engine", peers=REDIS)
