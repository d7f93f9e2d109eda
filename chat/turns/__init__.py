"""Turns: posting, branches and stopping."""
