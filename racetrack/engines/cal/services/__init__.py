"""Services of the calibration engine as native processes."""
