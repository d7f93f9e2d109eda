"""Imports of conversations from other products."""
