"""Services of Spark as native processes."""
