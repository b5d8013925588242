"""PostgreSQL as a baseline: a small consumer fills tables from Kafka, and plain views query
them."""
