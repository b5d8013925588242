"""Are the views right: every view, read back and compared with what the sources say."""
