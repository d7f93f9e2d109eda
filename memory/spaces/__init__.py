"""Spaces: authorization, groups and deletion."""
