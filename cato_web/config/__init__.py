"""The configuration: schema and loader."""
