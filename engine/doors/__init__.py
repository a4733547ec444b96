"""The doors to the engine: thin translators of commands into calls of Engine."""
