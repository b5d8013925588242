"""Apache Apex."""
