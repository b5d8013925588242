"""Where the services run: the runtimes, all behind one Stack."""
