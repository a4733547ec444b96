"""Widgets that several panes share."""
