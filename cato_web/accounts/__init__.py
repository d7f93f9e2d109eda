"""Accounts: who signs in, who administers, who did what."""
