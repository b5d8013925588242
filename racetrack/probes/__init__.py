"""What is sampled while an experiment runs; each probe writes raw lines into the run folder."""
