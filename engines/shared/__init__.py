"""What several engines share: following logs, PostgreSQL's protocol."""
