"""Django's SQLite backend with idle connections that are used again."""
