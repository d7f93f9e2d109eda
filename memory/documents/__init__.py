"""Documents: received, read, cut into pieces, embedded, served as a whole, replaced as a whole, and gone when deleted."""
