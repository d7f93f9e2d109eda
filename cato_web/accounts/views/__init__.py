"""The pages: each view translates a request into one service call and its outcome into a page or a fragment."""
