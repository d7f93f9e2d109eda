"""Accounts: authentication, administration of users, API tokens and the audit log."""
