"""The calibration engine, which counts events with injected defects."""
