"""Scripts that measure Cato; README.md says how to run each and what came out."""
