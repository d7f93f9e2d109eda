"""Rows for templates."""
