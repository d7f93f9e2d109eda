"""The REST API for clients that act for a user."""
