"""The OAuth 2.1 authorization server for /mcp: apps register, people allow them, and they get tokens."""
