"""Experiments, capacity searches, sweeps, faults and calibration on a running stack."""
