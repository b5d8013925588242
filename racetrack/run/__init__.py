"""Carries out plans: runs, their phases, searches, faults and calibration."""
