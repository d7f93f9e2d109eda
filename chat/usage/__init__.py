"""The usage of models: what requests used, what it cost, and the limits of a month."""
