"""Shared by several engines: following logs, PostgreSQL's protocol, views that are topics."""
