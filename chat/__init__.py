"""Threads, turns, and the answers of the model."""
