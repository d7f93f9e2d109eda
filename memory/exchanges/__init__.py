"""Exchanges: their life cycle, feedback, forgetting, moves, notes, records and metadata."""
