"""Are the views right: every view of the demo, read back and compared with what the sources say."""
