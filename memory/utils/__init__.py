"""Helpers that know nothing of memory."""
