"""Views that are upsert topics. Each change of a row is a message with the row's key; a deleted row
is a message without a value. So the last message of each key gives the view's current rows."""
