"""Threads: life cycle, titles, read markers and locks."""
