"""Real clients of /v1, each in an environment of its own, against a Cato with a scripted model endpoint."""
