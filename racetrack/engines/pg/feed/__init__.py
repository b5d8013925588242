"""The program that feeds PostgreSQL from Kafka; it runs in a process or a container of its own."""
