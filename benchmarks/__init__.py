"""Scripts that measure Cato; README.md describes usage and results."""
