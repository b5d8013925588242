"""Native services shared by all engines: database, broker, registry, CDC, load generator, Redis."""
