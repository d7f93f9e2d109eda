"""The pages of usage, prices and limits, and the names of what they belong to."""
