"""Measure and tune retrieval on the stored exchanges."""
