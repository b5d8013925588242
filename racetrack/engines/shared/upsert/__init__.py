"""Views that are upsert topics: each changed row is a message by its key, an empty one where it has
gone, so that the last message of each key is the view."""
