-- The view after it was written to Kafka and read back.
SELECT * FROM expected.high_value_users
