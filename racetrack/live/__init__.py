"""The page of a running session, and its HTTP interface. See docs/live.md."""
