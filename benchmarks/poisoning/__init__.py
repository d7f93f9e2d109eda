"""Hostile texts in memory: how often they leave their frame, displace honest results, or become more than quotations."""
