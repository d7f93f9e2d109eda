"""Tools of MCP servers that administrators connect, which the model may call while it answers."""
