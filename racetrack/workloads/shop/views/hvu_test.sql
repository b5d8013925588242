-- What was sent back to Kafka, and read again, equals the view.
SELECT * FROM expected.high_value_users
