"""Materialize, one of the two engines of the experiment of 2022."""
