"""Services of Deephaven as native processes."""
