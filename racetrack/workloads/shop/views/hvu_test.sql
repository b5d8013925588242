-- The same rows as high_value_users: the engine writes them to a topic, and reads the topic back.
SELECT * FROM expected.high_value_users
