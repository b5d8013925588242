"""The native runtime: services as plain processes, installed from package registries."""
