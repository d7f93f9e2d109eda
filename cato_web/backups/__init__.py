"""Backup of a whole installation into one file, and restore.

Entry points: `writing.back_up` and `restoring.restore`. `archive` knows the file format, `rows` the tables.
"""
