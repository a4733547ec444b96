"""The commands, a few to a file; each is imported only when it is called for."""
