"""Services of Storm as native processes."""
