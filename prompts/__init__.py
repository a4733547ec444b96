"""Prompt texts, one file a wording; language models arrive with the answers."""
