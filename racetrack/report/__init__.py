"""From figures to what a person reads."""
