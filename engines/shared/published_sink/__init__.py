"""The Java by which engines write to Redis what Yahoo's benchmark does, and the service that runs
an engine's program with it."""
