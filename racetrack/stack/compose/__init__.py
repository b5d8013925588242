"""The compose runtime: services as containers, described in docker-compose.yml."""
