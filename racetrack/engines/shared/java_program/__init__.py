"""Code shared by engines that run as Java programs written for this project: the installation
recipe, the service, and in `src/` Java sources that are compiled into each program."""
