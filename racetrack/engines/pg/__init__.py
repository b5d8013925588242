"""PostgreSQL, the baseline: tables that a small consumer fills, and plain views over them."""
