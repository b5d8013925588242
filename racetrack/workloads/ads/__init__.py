"""Yahoo's streaming benchmark: views of ads, counted by campaign and window of ten seconds.

docs/workloads.md says what differs from the published one. `load` is what the load generator asks
for, and `harness` what the harness does: neither imports the other.
"""
