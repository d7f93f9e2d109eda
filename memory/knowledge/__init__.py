"""Knowledge: statements with sources, which are kept up to date and forgotten with them."""
