"""The run folder, and the models of the JSON records in it."""
