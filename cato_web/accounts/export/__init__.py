"""The archive of everything an account contains."""
