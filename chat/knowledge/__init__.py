"""Extraction of statements from exchanges: what the model is asked, what is accepted of its reply, and when it runs."""
