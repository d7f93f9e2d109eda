"""Markdown to HTML, block by block."""
