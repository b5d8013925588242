"""Reports on run folders: text for the terminal, HTML pages, charts, and data files."""
