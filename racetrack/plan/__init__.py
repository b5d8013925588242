"""Plans: what is measured, as data. A plan is a TOML file; a command line is shorthand for one."""
