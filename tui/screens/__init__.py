"""Screens: the one with the panes, and the small ones above it."""
