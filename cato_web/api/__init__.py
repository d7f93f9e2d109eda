"""The HTTP API by which programs use Cato as a person who gave them a token."""
