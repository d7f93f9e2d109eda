"""Conversations with the model: threads, turns, and the answers as they are written."""
