"""Reports on run folders: terminal, page, charts, files."""
