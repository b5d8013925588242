"""The program that maintains the views. It runs in Pathway's Python environment."""
