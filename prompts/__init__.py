"""Prompt texts, one file a wording: a new wording is a new file. `engine.prompts` reads them."""
