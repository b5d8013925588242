"""The page `report.html`: its template, its style, and the script for values under the pointer."""
