"""The language model: endpoint, client and prompts."""
