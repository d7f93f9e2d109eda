"""Static files: bundles, and collecting them."""
