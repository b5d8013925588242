"""Code shared by engines: following logs, PostgreSQL's protocol, views in Kafka topics or Redis."""
