"""What memory announces to whoever listens."""

from django.dispatch import Signal

# exchange_ids: list of UUID. The exchanges are searchable now (or, failed, will not be without help).
indexed = Signal()
indexing_failed = Signal()
# exchange_ids: list of UUID; by: the person; as_part_of_a_document: bool. They are out of every read, and their
# erasure is under way.
forgotten = Signal()
# document_ids: list of UUID; by: the person. As above, with all their versions.
documents_forgotten = Signal()
# space and generation changed what serves; no arguments.
switched = Signal()
