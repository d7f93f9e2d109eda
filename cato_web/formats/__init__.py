"""Formats of dates and numbers by language, found by FORMAT_MODULE_PATH."""
