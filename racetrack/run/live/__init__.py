"""A live session: engines on one input, whose load and services a user changes while they run."""
