"""The terminal console: panes on the engine, and nothing the engine would need."""
