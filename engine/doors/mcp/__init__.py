"""`noctuary mcp`: notes and memory as tools of the Model Context Protocol, over standard input and output."""
