"""Verification: every view is read from the engine and compared with the sources."""
