"""Yahoo's streaming benchmark: views of ads, counted by campaign and ten-second window.

docs/workloads.md lists the differences from the published one. The load generator imports `load`,
the harness imports `harness`; neither imports the other."""
