"""The run folder, and the models of every record in it."""
