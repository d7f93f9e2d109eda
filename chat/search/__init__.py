"""The search page: its query, its filters and its rows."""
