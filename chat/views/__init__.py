"""Pages: each view translates a request into one service call, and its result into a page or fragment."""
