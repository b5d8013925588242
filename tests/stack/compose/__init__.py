"""Tests of the compose runtime: what can be told without starting a container."""
