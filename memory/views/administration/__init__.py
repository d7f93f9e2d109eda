"""The administrator's pages of what is remembered. Text of spaces that are not theirs to read stays hidden."""
