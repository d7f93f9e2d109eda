"""Exchanges a memory may hold, and questions whose right answer is known: what retrieval is measured with."""
