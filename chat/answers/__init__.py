"""Answers: streaming, persistence and failures."""
