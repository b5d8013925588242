"""Simulations that validate the capacity search (a fluid queue) and the verdict (synthetic lag)."""
