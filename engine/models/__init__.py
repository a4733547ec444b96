"""Models the engine uses; what can be computed without one never imports from here."""
