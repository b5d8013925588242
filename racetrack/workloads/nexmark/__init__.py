"""Workload of the Nexmark benchmark: persons, auctions and bids of an auction site, and the queries
of the field.

docs/workloads.md lists the differences from the reference, nexmark/nexmark. The load generator
imports `load`, and the harness imports `harness`. These modules do not import each other."""
