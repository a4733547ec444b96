"""`noctuary mcp`: search and ask as tools of the Model Context Protocol, over standard input and output."""
