"""Middleware for caching, compression and the origin of requests."""
