"""Figures for statistics: counts, history and disk usage."""
