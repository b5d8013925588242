"""Services of Kafka Streams as native processes."""
