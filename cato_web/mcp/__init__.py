"""Cato's memory as tools for other programs' models: the Model Context Protocol, at /mcp and over stdio."""
