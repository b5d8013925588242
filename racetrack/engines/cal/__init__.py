"""The calibration engine, which counts pageviews with injected defects."""
