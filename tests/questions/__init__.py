"""Exchanges, and questions with known answers, for measuring retrieval."""
