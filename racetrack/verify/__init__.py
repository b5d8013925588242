"""Verification: every view is read back and compared with the sources."""
