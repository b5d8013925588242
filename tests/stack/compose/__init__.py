"""Tests of the compose runtime that start no container."""
