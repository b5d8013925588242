"""Services of PostgreSQL as native processes."""
