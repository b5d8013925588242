"""Apex' local mode, one process, with the application in it."""

from racetrack.engines.shared.java_program.service import REDIS, JavaProgram

SERVICE = JavaProgram("apex", jar="apex-engine", peers=REDIS)
