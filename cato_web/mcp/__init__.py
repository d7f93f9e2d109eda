"""Memory as tools of the Model Context Protocol, at /mcp and over stdio."""
