"""Helpers that do not depend on memory."""
