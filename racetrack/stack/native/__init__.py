"""The native runtime: services as plain processes of this user."""
