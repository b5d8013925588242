"""What several engines share: following logs, PostgreSQL's protocol, views that are topics."""
