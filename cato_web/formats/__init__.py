"""How dates and numbers are written, in a module for each language; Django finds them by FORMAT_MODULE_PATH."""
