"""Workload of Yahoo's streaming benchmark, which counts ad views by campaign and ten-second window.

docs/workloads.md lists the differences from the original benchmark. The load generator imports
`load`, and the harness imports `harness`. These modules do not import each other."""
