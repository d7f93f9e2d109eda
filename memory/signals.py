"""Signals of memory; receivers run inside the sender's transaction."""

from django.dispatch import Signal

# exchange_ids: list of UUID.
exchanges_indexed = Signal()
indexing_failed = Signal()
# exchange_ids: list of UUID; by: user id; by_itself: bool, False for chunks of a document and for bulk operations.
exchanges_forgotten = Signal()
# document_ids: list of UUID; by: user id.
documents_deleted = Signal()
# operation: Operation.
operation_created = Signal()
# reveal: Reveal. `reveal_ended` is only sent if it ended before its time.
space_revealed = Signal()
reveal_ended = Signal()
# by: user id; thread_id or document_id: UUID; to: Space.
moved = Signal()
# by: user id; project: Space.
project_created = Signal()
# by: user id; count: int.
exchanges_exported = Signal()
# by: user id; days: dict of source to days.
retention_changed = Signal()
