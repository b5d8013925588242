"""Services of Apex as native processes."""
