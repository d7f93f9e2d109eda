"""Commands of `manage.py`, and their common parts."""
