"""Services of Flink as native processes."""
