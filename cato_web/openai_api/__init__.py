"""An API compatible with OpenAI's, at /v1."""
