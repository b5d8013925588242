"""Probes: each samples one thing during a run and writes raw lines into the run folder."""
