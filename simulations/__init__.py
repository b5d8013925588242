"""Simulations that validate the methods: the fluid queue and made-up series of lag."""
