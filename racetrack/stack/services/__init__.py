"""The services that every run has: database, broker, registry, CDC, load."""
