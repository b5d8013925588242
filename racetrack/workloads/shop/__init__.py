"""Workload of an online shop with pageviews, users, products and purchases.

The load generator imports `load`, and the harness imports `harness`. These modules do not import
each other."""
