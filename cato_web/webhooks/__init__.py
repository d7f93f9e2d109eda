"""Webhooks: signed requests that bring the events of memory to a person's programs, so that they need not ask for them."""
