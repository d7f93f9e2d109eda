"""Cato as programs see it that speak OpenAI's protocol: /v1."""
