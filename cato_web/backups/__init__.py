"""All that an installation keeps as one file, and an installation made of such a file.

`writing.back_up` and `restoring.restore` are the verbs; `archive` knows the file, `rows` the tables, and neither the other.
"""
