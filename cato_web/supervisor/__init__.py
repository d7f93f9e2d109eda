"""The supervisor, which starts and watches all processes."""
