"""The compose runtime: services as containers, as docker-compose.yml describes them."""
