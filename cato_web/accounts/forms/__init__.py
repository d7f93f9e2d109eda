"""The forms of accounts."""
