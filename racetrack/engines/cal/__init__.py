"""The calibration engine: counts pageviews with a programmed defect."""
