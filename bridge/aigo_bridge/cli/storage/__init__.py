"""Object storage, lakes and imported files on the command line."""
