"""Searches of the web for messages: SearXNG finds pages, whose passages become sources of the answer."""
