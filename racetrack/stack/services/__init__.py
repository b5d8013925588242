"""The services that every run has, as plain processes: database, broker, registry, CDC, load."""
